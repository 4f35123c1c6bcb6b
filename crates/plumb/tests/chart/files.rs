//! The committed files are what the code says.

use expect_test::expect_file;
use serde_json::json;

use crate::template;

#[test]
fn the_templates_are_generated_from_the_objects() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/plumb");
    expect_file![format!("{folder}/templates/plumb.yaml")].assert_eq(&template::objects());
    expect_file![format!("{folder}/templates/settings.yaml")].assert_eq(template::SETTINGS);
    expect_file![format!("{folder}/templates/crds.yaml")].assert_eq(template::CRDS);
    let schema = format!("{:#}\n", plumb_crd::install::values_schema());
    expect_file![format!("{folder}/values.schema.json")].assert_eq(&schema);
    expect_file![format!("{folder}/templates/NOTES.txt")].assert_eq(template::NOTES);
    for mut crd in plumb_crd::crds() {
        // Helm would delete every Application with the definition of its kind.
        crd["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
        let name = crd["metadata"]["name"].as_str().expect("a name");
        expect_file![format!("{folder}/files/crds/{name}.yaml")].assert_eq(&plumb_crd::yaml::to_yaml(&crd));
    }
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart = include_str!("../../../../charts/plumb/Chart.yaml");
    for key in ["version", "appVersion"] {
        let line = format!("\n{key}: {}\n", env!("CARGO_PKG_VERSION"));
        assert!(chart.contains(&line), "Chart.yaml has no line {line}");
    }
}

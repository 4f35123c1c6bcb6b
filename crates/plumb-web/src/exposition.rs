//! Prometheus text format, version 0.0.4.

use std::fmt::Write as _;

use plumb_engine::{Family, MetricKind};

/// The content type of [`print`].
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The families as text. Families without samples are omitted.
pub(crate) fn print(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let kind = match family.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let Family { name, help, .. } = family;
        // Writing to a String cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for sample in &family.samples {
            text.push_str(name);
            text.push_str(sample.suffix);
            for (index, (label, value)) in sample.labels.iter().enumerate() {
                text.push(if index == 0 { '{' } else { ',' });
                text.push_str(label);
                text.push_str("=\"");
                escape(value, &mut text);
                text.push('"');
            }
            if !sample.labels.is_empty() {
                text.push('}');
            }
            let _ = writeln!(text, " {}", sample.value);
        }
    }
    text
}

fn escape(value: &str, text: &mut String) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use plumb_engine::Sample;

    use super::*;

    fn sample(suffix: &'static str, labels: &[(&str, &str)], value: f64) -> Sample {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Sample { suffix, labels, value }
    }

    #[test]
    fn numbers_are_printed_as_prometheus_reads_them() {
        let families = [
            Family {
                name: "a_total",
                help: "A.",
                kind: MetricKind::Counter,
                samples: vec![sample("", &[("name", "we\"b\\\n"), ("phase", "")], 2.0)],
            },
            Family { name: "none", help: "Nothing.", kind: MetricKind::Gauge, samples: Vec::new() },
            Family {
                name: "b",
                help: "B.",
                kind: MetricKind::Histogram,
                samples: vec![sample("_bucket", &[("le", "0.25")], 1.0), sample("_sum", &[], 0.125)],
            },
        ];
        assert_eq!(
            print(&families),
            "# HELP a_total A.\n# TYPE a_total counter\na_total{name=\"we\\\"b\\\\\\n\",phase=\"\"} 2\n\
             # HELP b B.\n# TYPE b histogram\nb_bucket{le=\"0.25\"} 1\nb_sum 0.125\n"
        );
    }
}

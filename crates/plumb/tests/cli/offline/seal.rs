//! `plumb seal` without a cluster: certificates of this test, and an API server that it plays.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};

use super::api::serve;
use crate::golden::Said;
use crate::shell::Shell;

/// What must never be seen.
const VALUE: &str = "kestrel-hunter2";

fn certificate(first_year: i32, last_year: i32, key: &KeyPair) -> Result<String> {
    let mut params = CertificateParams::default();
    params.not_before = rcgen::date_time_ymd(first_year, 1, 1);
    params.not_after = rcgen::date_time_ymd(last_year, 1, 1);
    Ok(params.self_signed(key)?.pem())
}

fn rsa() -> Result<KeyPair> {
    Ok(KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?)
}

/// A shell with certificates, a Secret and a file to merge into.
fn shell() -> Result<Shell> {
    let shell = Shell::new()?;
    let key = rsa()?;
    shell.file("cert.pem", &certificate(2020, 2200, &key)?)?;
    shell.file("expired.pem", &certificate(2020, 2021, &key)?)?;
    shell.file("early.pem", &certificate(2199, 2200, &key)?)?;
    shell.file("curve.pem", &certificate(2020, 2200, &KeyPair::generate()?)?)?;
    shell.file("key.pem", &key.serialize_pem())?;
    shell.file("password.txt", VALUE)?;
    shell.file("variables.env", &format!("# of the shop\nUSER=admin\nPASSWORD={VALUE}\n"))?;
    let annotation = json!({"stringData": {"password": VALUE}}).to_string();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "db", "namespace": "shop", "labels": {"team": "a"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": annotation}},
        "data": {"user": STANDARD.encode("admin")}, "stringData": {"password": VALUE}});
    shell.file("secret.yaml", &secret.to_string())?;
    shell.file("sealed.yaml", SEALED)?;
    Ok(shell)
}

const SEALED: &str = "\
# Who may see this: everybody.
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata:
  name: db # as in the Deployment
  namespace: shop
spec:
  encryptedData:
    password: AgOld # changed every year
";

/// Encrypted texts differ from run to run; everything else is the same.
fn without_ciphertext(said: &mut Said) {
    let line = |line: &str| match line.split_once(": \"").or_else(|| line.split_once(": ")) {
        Some((key, value)) if value.len() > 300 => format!("{key}: CIPHERTEXT\n"),
        _ if line.len() > 300 => "CIPHERTEXT\n".to_owned(),
        _ => format!("{line}\n"),
    };
    said.stdout = said.stdout.lines().map(line).collect();
}

fn seal(shell: &mut Shell, line: &str, stdin: &str) -> Result<Said> {
    let mut said = shell.quietly(line, &[], stdin)?;
    for text in [&said.stdout, &said.stderr] {
        ensure!(!text.contains(VALUE), "{line} shows the value: {text}");
        ensure!(!text.contains(&STANDARD.encode(VALUE)), "{line} shows the value: {text}");
    }
    let raw = said.stdout.clone();
    without_ciphertext(&mut said);
    shell.transcript.add(line, &said);
    said.stdout = raw;
    Ok(said)
}

#[test]
fn secrets_are_sealed_from_every_input() -> Result<()> {
    let mut shell = shell()?;
    let secret = std::fs::read_to_string(shell.home.path().join("secret.yaml"))?;
    seal(&mut shell, "plumb seal secret.yaml --cert cert.pem", "")?;
    seal(&mut shell, "plumb seal --cert cert.pem --scope cluster-wide -o json", &secret)?;
    seal(
        &mut shell,
        "plumb seal --name web -n shop --from-file password.txt --from-env-file variables.env --scope namespace-wide --cert cert.pem",
        "",
    )?;
    seal(&mut shell, "plumb seal --name web -n shop --from-literal a=not-so-secret --cert cert.pem", "")?;
    // As kubectl prints several.
    let item = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"},
            "stringData": {"password": VALUE}})
    };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [item("one"), item("two")]}).to_string();
    let several = shell.quietly("plumb seal --cert cert.pem -o json", &[], &list)?;
    ensure!(several.code == 0 && !several.stdout.contains(VALUE), "{}{}", several.stdout, several.stderr);
    assert_eq!(several.stdout.matches("\"kind\": \"SealedSecret\"").count(), 2, "{}", several.stdout);
    let raw = seal(&mut shell, "plumb seal --raw --name web -n shop --cert cert.pem", VALUE)?;
    let bytes = STANDARD.decode(raw.stdout.trim())?;
    assert_eq!(bytes.len(), 2 + 256 + VALUE.len() + 16, "the text is the value and nothing else");
    let address = format!("file://{}", shell.home.path().join("cert.pem").display());
    let by_address = shell.quietly(&format!("plumb seal secret.yaml --cert {address}"), &[], "")?;
    assert_eq!(by_address.code, 0, "{}", by_address.stderr);
    // A manifest is no value.
    seal(&mut shell, "plumb seal --raw secret.yaml --name db -n shop --cert cert.pem", "")?;
    seal(&mut shell, "plumb seal secret.yaml --cert cert.pem --dry-run", "")?;
    shell.transcript.check("seal")
}

#[test]
fn a_file_keeps_everything_but_the_new_values() -> Result<()> {
    let mut shell = shell()?;
    let path = shell.home.path().join("sealed.yaml");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640))?;
    let merge = "plumb seal --merge-into sealed.yaml --cert cert.pem --from-file";
    // Refused, and nothing is written.
    seal(&mut shell, &format!("{merge} password=password.txt"), "")?;
    seal(&mut shell, &format!("{merge} user=password.txt -n other"), "")?;
    seal(&mut shell, &format!("{merge} user=password.txt --scope cluster-wide"), "")?;
    seal(&mut shell, &format!("{merge} user=password.txt --name web"), "")?;
    seal(&mut shell, &format!("{merge} user=password.txt --dry-run"), "")?;
    assert_eq!(std::fs::read_to_string(&path)?, SEALED);
    // Merged.
    seal(&mut shell, &format!("{merge} user=password.txt"), "")?;
    let merged = std::fs::read_to_string(&path)?;
    let (kept, added) = merged.split_at(SEALED.len());
    assert_eq!(kept, SEALED);
    ensure!(added.starts_with("    user: AQ") && added.lines().count() == 1, "{added}");
    seal(&mut shell, &format!("{merge} password=password.txt --overwrite"), "")?;
    let overwritten = std::fs::read_to_string(&path)?;
    ensure!(
        !overwritten.contains("AgOld") && overwritten.contains(" # changed every year\n"),
        "{overwritten}"
    );
    assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o640);
    ensure!(
        std::fs::read_dir(shell.home.path())?
            .flatten()
            .all(|file| { !file.file_name().to_string_lossy().starts_with(".tmp") })
    );
    shell.transcript.check("seal-merge")
}

#[test]
fn bad_input_is_refused_and_nothing_is_printed() -> Result<()> {
    let mut shell = shell()?;
    shell.file("broken.yaml", &format!("stringData: {{password: {VALUE}\n"))?;
    shell.file("config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")?;
    shell.file(
        "unencoded.yaml",
        &format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata: {{a: {VALUE}}}\n"),
    )?;
    shell.file("bad.env", &format!("A=1\n{VALUE}\n"))?;
    for line in [
        "plumb seal secret.yaml --cert expired.pem",
        "plumb seal secret.yaml --cert early.pem",
        "plumb seal secret.yaml --cert curve.pem",
        "plumb seal secret.yaml --cert key.pem",
        "plumb seal secret.yaml --cert secret.yaml",
        "plumb seal secret.yaml --cert absent.pem",
        "plumb seal secret.yaml --cert http://cert.example.com/cert.pem",
        "plumb seal secret.yaml --cert ftp://cert.example.com/cert.pem",
        "plumb seal secret.yaml --cert cert.pem -n other",
        "plumb seal secret.yaml --cert cert.pem --name other",
        "plumb seal broken.yaml --cert cert.pem",
        "plumb seal config.yaml --cert cert.pem",
        "plumb seal unencoded.yaml --cert cert.pem",
        "plumb seal --cert cert.pem",
        "plumb seal --cert cert.pem --name a --from-file password.txt",
        "plumb seal --cert cert.pem -n shop --from-file password.txt",
        "plumb seal --cert cert.pem --name a -n shop --from-file a=password.txt --from-file a=password.txt",
        "plumb seal --cert cert.pem --name a -n shop --from-file a/b=password.txt",
        "plumb seal --cert cert.pem --name a -n shop --from-file -",
        "plumb seal --cert cert.pem --name a -n shop --from-env-file bad.env",
        "plumb seal --cert cert.pem --raw --name a -n shop --from-env-file variables.env",
        "plumb seal secret.yaml --cert cert.pem --from-file password.txt",
        "plumb seal --merge-into secret.yaml --cert cert.pem --from-file password.txt",
        "plumb seal --re-encrypt . --cert cert.pem",
        "plumb seal secret.yaml",
    ] {
        let said = seal(&mut shell, line, "")?;
        assert!(said.code != 0 && said.stdout.is_empty(), "{line}: {}", said.stdout);
    }
    // Credentials in an address are not repeated.
    let address = format!("http://robot:{VALUE}@cert.example.com/cert.pem");
    let refused = shell.quietly(&format!("plumb seal secret.yaml --cert {address}"), &[], "")?;
    ensure!(refused.code != 0 && refused.stderr.contains("cert.example.com"), "{}", refused.stderr);
    ensure!(!refused.stderr.contains(VALUE), "{}", refused.stderr);
    // The text may be the value.
    let literal = shell.quietly(&format!("plumb seal --name a -n b --from-literal {VALUE}"), &[], "")?;
    assert!(literal.code != 0 && !literal.stderr.contains(VALUE), "{}", literal.stderr);
    shell.transcript.check("seal-refused")
}

#[test]
fn a_certificate_is_read_from_an_address_of_this_machine() -> Result<()> {
    let shell = shell()?;
    let certificate = std::fs::read_to_string(shell.home.path().join("cert.pem"))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = std::thread::spawn(move || -> Result<()> {
        for (code, body) in [("200 OK", certificate.as_str()), ("302 Found", ""), ("404 Not Found", "no")] {
            let (mut stream, _) = listener.accept()?;
            let _ = stream.read(&mut [0; 4096])?;
            let head =
                format!("HTTP/1.1 {code}\r\nlocation: http://example.com/\r\ncontent-length: {}", body.len());
            write!(stream, "{head}\r\nconnection: close\r\n\r\n{body}")?;
        }
        Ok(())
    });
    let line = format!("plumb seal secret.yaml --cert http://{address}/v1/cert.pem");
    let said = shell.quietly(&line, &[], "")?;
    assert_eq!(said.code, 0, "{}", said.stderr);
    for what in ["302 Found", "404 Not Found"] {
        let said = shell.quietly(&line, &[], "")?;
        assert!(said.code == 20 && said.stderr.contains(what), "{}", said.stderr);
    }
    server.join().map_err(|_| anyhow::anyhow!("the server failed"))?.context("serve")
}

#[test]
fn the_controller_is_asked_through_the_api_server() -> Result<()> {
    let mut shell = shell()?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sealed"},
        "spec": {"ports": [{"name": "http", "port": 8080}]}});
    let rotated = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "db"},
        "spec": {"encryptedData": {"password": "AgNew", "of-the-template": "AgMore"}}});
    let proxy = "/api/v1/namespaces/tools/services/http:sealed:http/proxy/v1";
    let (verify, rotate) = (format!("{proxy}/verify"), format!("{proxy}/rotate"));
    serve(
        &mut shell,
        &[("/api/v1/namespaces/tools/services/sealed", service), (&verify, Value::Null), (&rotate, rotated)],
    )?;
    let controller = "--controller-name sealed --controller-namespace tools";
    seal(&mut shell, &format!("plumb seal --validate . {controller}"), "")?;
    seal(&mut shell, &format!("plumb seal --validate secret.yaml {controller}"), "")?;
    seal(&mut shell, &format!("plumb seal --re-encrypt sealed.yaml --dry-run {controller}"), "")?;
    assert_eq!(std::fs::read_to_string(shell.home.path().join("sealed.yaml"))?, SEALED);
    seal(&mut shell, &format!("plumb seal --re-encrypt . {controller}"), "")?;
    let after = std::fs::read_to_string(shell.home.path().join("sealed.yaml"))?;
    assert_eq!(after, SEALED.replace("AgOld", "AgNew"));
    // What cannot be read is named: it may have a SealedSecret that nobody looked at.
    std::fs::create_dir(shell.home.path().join("more"))?;
    shell.file("more/template.yaml", "{{ if .Values.x }}\nkind: SealedSecret\n{{ end }}\n")?;
    shell.file("more/other.yaml", "{{ if .Values.x }}\nkind: ConfigMap\n{{ end }}\n")?;
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {}",
        SEALED.trim_start_matches("# Who may see this: everybody.\n").trim_end().replace('\n', "\n  ")
    );
    shell.file("more/list.yaml", &format!("{list}\n"))?;
    seal(&mut shell, &format!("plumb seal --validate more {controller}"), "")?;
    seal(&mut shell, &format!("plumb seal --re-encrypt more {controller}"), "")?;
    // A link stays a link.
    std::os::unix::fs::symlink("../sealed.yaml", shell.home.path().join("more/link.yaml"))?;
    std::fs::write(shell.home.path().join("sealed.yaml"), SEALED)?;
    seal(&mut shell, &format!("plumb seal --re-encrypt more/link.yaml {controller}"), "")?;
    ensure!(shell.home.path().join("more/link.yaml").is_symlink(), "the link was replaced");
    let after = std::fs::read_to_string(shell.home.path().join("sealed.yaml"))?;
    assert_eq!(after, SEALED.replace("AgOld", "AgNew"));
    seal(&mut shell, "plumb seal --fetch-cert", "")?;
    shell.transcript.check("seal-controller")
}

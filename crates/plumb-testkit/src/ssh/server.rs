//! Authentication, and `git upload-pack` behind it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;

use super::transport::{Fields, KEY_TYPE, Message, Reader, Writer, handshake, key_blob};

/// A server; its threads end with the process.
pub struct SshServer {
    address: SocketAddr,
    host_key: Arc<Ed25519KeyPair>,
    commands: Arc<Mutex<Vec<String>>>,
}

impl SshServer {
    /// Starts a server with a new host key. `authorized` is the line of the public key that may enter, as
    /// `ssh-keygen` writes it.
    pub fn start(authorized: &str) -> Result<Self> {
        let blob = authorized.split_whitespace().nth(1).context("a line of a public key")?;
        let authorized = Arc::new(STANDARD.decode(blob).context("the public key is not base64")?);
        let host_key = Arc::new(Ed25519KeyPair::generate().context("make a host key")?);
        let listener = TcpListener::bind("127.0.0.1:0").context("listen")?;
        let server = Self { address: listener.local_addr()?, host_key, commands: Arc::default() };
        let (host_key, commands) = (Arc::clone(&server.host_key), Arc::clone(&server.commands));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (host_key, authorized) = (Arc::clone(&host_key), Arc::clone(&authorized));
                let commands = Arc::clone(&commands);
                // A client that disconnects is not an error of the server.
                std::thread::spawn(move || serve(stream, &host_key, &authorized, &commands));
            }
        });
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The line of a `known_hosts` file for it.
    pub fn known_hosts(&self) -> String {
        let blob = STANDARD.encode(key_blob(self.host_key.public_key().as_ref()));
        format!("[{}]:{} {KEY_TYPE} {blob}\n", self.address.ip(), self.address.port())
    }

    /// The commands that clients ran.
    pub fn commands(&self) -> Vec<String> {
        self.commands.lock().clone()
    }
}

fn serve(
    stream: TcpStream,
    host_key: &Ed25519KeyPair,
    authorized: &[u8],
    commands: &Mutex<Vec<String>>,
) -> Result<()> {
    let (mut reader, mut writer, session) = handshake(stream, host_key)?;
    authenticate(&mut reader, &mut writer, &session, authorized)?;
    let (command, channel) = wait_for_command(&mut reader, &mut writer)?;
    commands.lock().push(command.clone());
    run(&command, channel, reader, writer)
}

/// Lets the one key in.
fn authenticate(reader: &mut Reader, writer: &mut Writer, session: &[u8], authorized: &[u8]) -> Result<()> {
    loop {
        let packet = reader.packet()?;
        let mut fields = Fields::of(&packet);
        match fields.byte()? {
            // "service request"
            5 => writer.send(&Message::of(6).string(fields.string()?))?,
            // "user authentication request"
            50 => {
                let (user, service, method) = (fields.string()?, fields.string()?, fields.string()?);
                let offered = (method == b"publickey")
                    .then(|| {
                        Ok::<_, anyhow::Error>((fields.byte()? == 1, fields.string()?, fields.string()?))
                    })
                    .transpose()?;
                match offered {
                    Some((false, algorithm, blob)) if blob == authorized => {
                        writer.send(&Message::of(60).string(algorithm).string(blob))?;
                    }
                    Some((true, algorithm, blob)) if blob == authorized => {
                        let signed = Message::default()
                            .string(session)
                            .byte(50)
                            .string(user)
                            .string(service)
                            .string(method)
                            .byte(1)
                            .string(algorithm)
                            .string(blob);
                        let signature = fields.string()?;
                        let mut signature = Fields::of(signature);
                        ensure!(signature.string()? == KEY_TYPE.as_bytes(), "another sort of signature");
                        let public = blob.get(blob.len().saturating_sub(32)..).unwrap_or_default();
                        UnparsedPublicKey::new(&ED25519, public)
                            .verify(&signed.into_bytes(), signature.string()?)
                            .context("the signature is wrong")?;
                        return writer.send(&Message::of(52));
                    }
                    Some(_) | None => writer.send(&Message::of(51).string("publickey").byte(0))?,
                }
            }
            other => ignore_or_fail(other)?,
        }
    }
}

/// The command of the first `exec`, and the client's number of its channel.
fn wait_for_command(reader: &mut Reader, writer: &mut Writer) -> Result<(String, u32)> {
    let mut channel = 0;
    loop {
        let packet = reader.packet()?;
        let mut fields = Fields::of(&packet);
        match fields.byte()? {
            // "global request"
            80 => {
                fields.string()?;
                if fields.byte()? == 1 {
                    writer.send(&Message::of(82))?;
                }
            }
            // "channel open"
            90 => {
                ensure!(fields.string()? == b"session", "only sessions are served");
                channel = fields.number()?;
                writer.send(
                    &Message::of(91).number(channel).number(0).number(i32::MAX as u32).number(32_768),
                )?;
            }
            // "channel request"
            98 => {
                fields.number()?;
                let what = fields.string()?;
                let wants_reply = fields.byte()? == 1;
                let is_command = what == b"exec";
                if wants_reply {
                    writer.send(&Message::of(if is_command { 99 } else { 100 }).number(channel))?;
                }
                if is_command {
                    return Ok((String::from_utf8_lossy(fields.string()?).into_owned(), channel));
                }
            }
            other => ignore_or_fail(other)?,
        }
    }
}

/// Runs `git-upload-pack '<path>'` between the two ends of the channel.
fn run(command: &str, channel: u32, mut reader: Reader, mut writer: Writer) -> Result<()> {
    let path = command.strip_prefix("git-upload-pack ").context("only git-upload-pack is served")?;
    let mut child = Command::new("git")
        .arg("upload-pack")
        .arg(path.trim_matches('\''))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("run git")?;
    let mut stdin = child.stdin.take();
    let mut stdout = child.stdout.take().context("the output of git")?;
    let incoming = std::thread::spawn(move || {
        while let Ok(packet) = reader.packet() {
            let mut fields = Fields::of(&packet);
            match (fields.byte(), fields.number()) {
                // "channel data"
                (Ok(94), Ok(_)) => {
                    let written = fields.string().map(|data| stdin.as_mut().map(|pipe| pipe.write_all(data)));
                    if !matches!(written, Ok(Some(Ok(())))) {
                        break;
                    }
                }
                // "channel end of file"
                (Ok(96), Ok(_)) => drop(stdin.take()),
                // "channel close"
                (Ok(97), Ok(_)) => break,
                _ => {}
            }
        }
    });
    let mut buffer = vec![0; 16_384];
    loop {
        let n_read = stdout.read(&mut buffer)?;
        if n_read == 0 {
            break;
        }
        writer.send(&Message::of(94).number(channel).string(&buffer[..n_read]))?;
    }
    let code = child.wait()?.code().unwrap_or(255);
    let status = Message::of(98).number(channel).string("exit-status").byte(0).number(u32::try_from(code)?);
    writer.send(&status)?;
    writer.send(&Message::of(96).number(channel))?;
    writer.send(&Message::of(97).number(channel))?;
    incoming.join().map_err(|_| anyhow::anyhow!("the reading thread failed"))
}

/// "ignore", "unimplemented", "debug", "extension info" and windows mean nothing here.
fn ignore_or_fail(number: u8) -> Result<()> {
    match number {
        2..=4 | 7 | 93 => Ok(()),
        other => bail!("message {other} was not expected"),
    }
}

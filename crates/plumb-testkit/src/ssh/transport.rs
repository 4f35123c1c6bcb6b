//! Packets, and the exchange of keys that protects them: curve25519-sha256, ssh-ed25519, aes256-gcm@openssh.com.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context as _, Result, ensure};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, EphemeralPrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::rand;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};

/// The one sort of key that it knows.
pub(super) const KEY_TYPE: &str = "ssh-ed25519";

/// A public key as it goes over the line.
pub(super) fn key_blob(public: &[u8]) -> Vec<u8> {
    Message::default().string(KEY_TYPE).string(public).into_bytes()
}

const VERSION: &str = "SSH-2.0-plumb_testkit";
const MAX_PACKET: usize = 256 << 10;
const TAG: usize = 16;

/// A message under construction.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// One that begins with this number.
    pub(super) fn of(number: u8) -> Self {
        Self(vec![number])
    }

    pub(super) fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    pub(super) fn number(mut self, number: u32) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(super) fn string(self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut message = self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        message.0.extend_from_slice(bytes);
        message
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A message that is read field by field.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).context("the message is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn number(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into()?))
    }

    pub(super) fn string(&mut self) -> Result<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }
}

/// One direction's key and the number that makes every packet's nonce another.
struct Direction {
    key: LessSafeKey,
    nonce: [u8; 12],
}

impl Direction {
    fn next_nonce(&mut self) -> Nonce {
        let nonce = Nonce::assume_unique_for_key(self.nonce);
        for byte in self.nonce.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        nonce
    }
}

/// The client's packets.
pub(super) struct Reader {
    stream: BufReader<TcpStream>,
    protection: Option<Direction>,
}

impl Reader {
    /// The next message.
    pub(super) fn packet(&mut self) -> Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let n_bytes = u32::from_be_bytes(length) as usize;
        ensure!((2..=MAX_PACKET).contains(&n_bytes), "a packet of {n_bytes} bytes");
        let mut body = vec![0; n_bytes + if self.protection.is_some() { TAG } else { 0 }];
        self.stream.read_exact(&mut body)?;
        if let Some(protection) = &mut self.protection {
            let nonce = protection.next_nonce();
            protection.key.open_in_place(nonce, Aad::from(length), &mut body).context("open a packet")?;
            body.truncate(n_bytes);
        }
        let padding = usize::from(body[0]);
        let end = n_bytes.checked_sub(padding).filter(|end| *end > 1).context("too much padding")?;
        Ok(body[1..end].to_vec())
    }
}

/// The server's packets.
pub(super) struct Writer {
    stream: TcpStream,
    protection: Option<Direction>,
}

impl Writer {
    pub(super) fn send(&mut self, message: &Message) -> Result<()> {
        // The length itself is part of the block only while nothing is protected.
        let before = if self.protection.is_some() { 1 } else { 5 };
        let mut padding = 16 - (before + message.0.len()) % 16;
        if padding < 4 {
            padding += 16;
        }
        let mut body = vec![u8::try_from(padding)?];
        body.extend(&message.0);
        body.resize(body.len() + padding, 0);
        let length = u32::try_from(body.len())?.to_be_bytes();
        if let Some(protection) = &mut self.protection {
            let nonce = protection.next_nonce();
            protection
                .key
                .seal_in_place_append_tag(nonce, Aad::from(length), &mut body)
                .context("seal a packet")?;
        }
        self.stream.write_all(&[&length[..], &body].concat())?;
        Ok(())
    }
}

/// Proves to be the owner of the host key and agrees on keys. Gives back the session's identifier as well.
pub(super) fn handshake(stream: TcpStream, host_key: &Ed25519KeyPair) -> Result<(Reader, Writer, Vec<u8>)> {
    let mut writer = Writer { stream: stream.try_clone()?, protection: None };
    let mut reader = Reader { stream: BufReader::new(stream), protection: None };
    writer.stream.write_all(format!("{VERSION}\r\n").as_bytes())?;
    let mut client_version = String::new();
    reader.stream.read_line(&mut client_version)?;
    let offer = offer()?;
    writer.send(&offer)?;
    let client_offer = reader.packet()?;
    let first = reader.packet()?;
    let mut fields = Fields::of(&first);
    ensure!(fields.byte()? == 30, "the client begins another exchange of keys");
    let client_public = fields.string()?;
    let own = EphemeralPrivateKey::generate(&X25519, &rand::SystemRandom::new()).context("make a key")?;
    let own_public = own.compute_public_key().context("make a public key")?;
    let peer = UnparsedPublicKey::new(&X25519, client_public);
    let secret = agreement::agree_ephemeral(own, peer, anyhow::anyhow!("no agreement"), |secret| {
        Ok(positive_number(secret))
    })?;
    let blob = key_blob(host_key.public_key().as_ref());
    let exchange = Message::default()
        .string(client_version.trim_end())
        .string(VERSION)
        .string(client_offer)
        .string(offer.into_bytes())
        .string(&blob)
        .string(client_public)
        .string(own_public.as_ref())
        .string(&secret);
    let session = Sha256::digest(exchange.into_bytes()).to_vec();
    let signature = Message::default().string(KEY_TYPE).string(host_key.sign(&session).as_ref());
    let reply = Message::of(31).string(&blob).string(own_public.as_ref()).string(signature.into_bytes());
    writer.send(&reply)?;
    writer.send(&Message::of(21))?;
    ensure!(reader.packet()? == [21], "the client does not take the new keys");
    let derive = |letter: u8| {
        let start = Message::default().string(&secret).into_bytes();
        Sha256::digest([&start[..], &session, &[letter], &session].concat())
    };
    let direction = |nonce: u8, key: u8| -> Result<Direction> {
        let key = UnboundKey::new(&AES_256_GCM, &derive(key)).context("use the key")?;
        let nonce = derive(nonce)[..12].try_into()?;
        Ok(Direction { key: LessSafeKey::new(key), nonce })
    };
    reader.protection = Some(direction(b'A', b'C')?);
    writer.protection = Some(direction(b'B', b'D')?);
    Ok((reader, writer, session))
}

/// "key exchange init": one algorithm of each sort.
fn offer() -> Result<Message> {
    let mut cookie = [0; 16];
    rand::fill(&mut cookie).context("make a cookie")?;
    let mut message = Message::of(20);
    message.0.extend(cookie);
    let cipher = "aes256-gcm@openssh.com";
    let lists = [
        "curve25519-sha256",
        KEY_TYPE,
        cipher,
        cipher,
        "hmac-sha2-256",
        "hmac-sha2-256",
        "none",
        "none",
        "",
        "",
    ];
    let message = lists.into_iter().fold(message, Message::string);
    Ok(message.byte(0).number(0))
}

/// A number as the protocol writes it: no zeros in front but the one that keeps it positive.
fn positive_number(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let digits = &bytes[start..];
    let is_high = digits.first().is_some_and(|byte| byte & 0x80 != 0);
    is_high.then_some(0).into_iter().chain(digits.iter().copied()).collect()
}

//! Reads public keys of `OpenPGP`: which keys an armoured text holds, and what they are called. Signatures are checked by
//! gpg; here only names are read, from text that anybody may have made.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::random::hex;

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";
/// Largest text, and most packets in it.
const LARGEST: usize = 4 << 20;
const MOST_PACKETS: usize = 10_000;

/// Kinds of packets.
const PUBLIC_KEY: u8 = 6;
const USER_ID: u8 = 13;
/// A key of any other kind of packet is private.
const SECRET_KEYS: [u8; 2] = [5, 7];

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicKey {
    /// The last 16 digits of the fingerprint.
    pub(crate) id: String,
    pub(crate) fingerprint: String,
    /// The first user id.
    pub(crate) owner: String,
    /// Algorithm and length, such as `rsa4096`.
    pub(crate) kind: String,
    /// The key alone, armoured.
    pub(crate) armoured: String,
}

/// Why a text holds no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the text has no public key block")]
    NoBlock,
    #[error("a public key block cannot be read")]
    Damaged,
    #[error("the text holds a private key; send the public one")]
    Private,
}

/// All keys of a text.
pub(crate) fn read(text: &str) -> Result<Vec<PublicKey>, KeyError> {
    if text.len() > LARGEST {
        return Err(KeyError::Damaged);
    }
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let (block, after) = after.split_once(END).ok_or(KeyError::Damaged)?;
        keys.extend(keys_of(&dearmour(block)?)?);
        rest = after;
    }
    if keys.is_empty() { Err(KeyError::NoBlock) } else { Ok(keys) }
}

/// The bytes of a block: what follows the empty line after the headers, without the checksum.
fn dearmour(block: &str) -> Result<Vec<u8>, KeyError> {
    let lines = block.lines().map(str::trim).skip_while(|line| line.is_empty());
    let body: String = lines
        .skip_while(|line| line.contains(": "))
        .filter(|line| !line.is_empty() && !line.starts_with('='))
        .collect();
    STANDARD.decode(body).map_err(|_| KeyError::Damaged)
}

fn keys_of(bytes: &[u8]) -> Result<Vec<PublicKey>, KeyError> {
    let packets = packets(bytes)?;
    if packets.iter().any(|packet| SECRET_KEYS.contains(&packet.kind)) {
        return Err(KeyError::Private);
    }
    let starts: Vec<usize> = packets
        .iter()
        .enumerate()
        .filter(|(_, packet)| packet.kind == PUBLIC_KEY)
        .map(|(place, _)| place)
        .collect();
    let mut keys = Vec::new();
    for (place, start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).copied().unwrap_or(packets.len());
        let own = packets.get(*start..end).unwrap_or_default();
        let Some(first) = own.first() else { continue };
        let fingerprint = fingerprint(first.body).ok_or(KeyError::Damaged)?;
        let owner = own.iter().find(|packet| packet.kind == USER_ID);
        let owner = owner.map(|packet| String::from_utf8_lossy(packet.body).into_owned()).unwrap_or_default();
        let whole: Vec<u8> = own.iter().flat_map(|packet| packet.whole.iter().copied()).collect();
        keys.push(PublicKey {
            id: fingerprint.get(fingerprint.len().saturating_sub(16)..).unwrap_or_default().to_owned(),
            owner: owner.chars().filter(|letter| !letter.is_control()).collect(),
            kind: kind(first.body),
            armoured: armour(&whole),
            fingerprint,
        });
    }
    Ok(keys)
}

struct Packet<'b> {
    kind: u8,
    body: &'b [u8],
    /// With its head.
    whole: &'b [u8],
}

fn packets(bytes: &[u8]) -> Result<Vec<Packet<'_>>, KeyError> {
    let mut packets = Vec::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        if first & 0x80 == 0 || packets.len() >= MOST_PACKETS {
            return Err(KeyError::Damaged);
        }
        let at = |place: usize| rest.get(place).copied().map(usize::from).ok_or(KeyError::Damaged);
        let number = |from: usize, to: usize| -> Result<usize, KeyError> {
            (from..to).try_fold(0_usize, |sum, place| Ok((sum << 8) | at(place)?))
        };
        let (kind, head, length): (u8, usize, usize) = if first & 0x40 != 0 {
            let kind = first & 0x3f;
            match at(1)? {
                short @ 0..192 => (kind, 2, short),
                middle @ 192..224 => (kind, 3, ((middle - 192) << 8) + at(2)? + 192),
                255 => (kind, 6, number(2, 6)?),
                // Keys have no parts of unknown length.
                _ => return Err(KeyError::Damaged),
            }
        } else {
            let kind = (first >> 2) & 0x0f;
            match first & 3 {
                0 => (kind, 2, number(1, 2)?),
                1 => (kind, 3, number(1, 3)?),
                2 => (kind, 5, number(1, 5)?),
                _ => return Err(KeyError::Damaged),
            }
        };
        let end = head.checked_add(length).filter(|end| *end <= rest.len()).ok_or(KeyError::Damaged)?;
        let (whole, after) = rest.split_at(end);
        packets.push(Packet { kind, body: whole.get(head..).unwrap_or_default(), whole });
        rest = after;
    }
    Ok(packets)
}

/// The fingerprint of a key of version 4, or of version 6.
fn fingerprint(body: &[u8]) -> Option<String> {
    let length = u16::try_from(body.len()).ok()?;
    match body.first()? {
        4 => {
            let mut text = vec![0x99];
            text.extend(length.to_be_bytes());
            text.extend_from_slice(body);
            Some(hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, &text).as_ref()).to_uppercase())
        }
        _ => None,
    }
}

/// Algorithm and length, as gpg writes them.
fn kind(body: &[u8]) -> String {
    let bits = match body.get(6..8) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    };
    match body.get(5) {
        Some(1..=3) => format!("rsa{bits}"),
        Some(16) => format!("elg{bits}"),
        Some(17) => format!("dsa{bits}"),
        Some(19) => "ecdsa".to_owned(),
        Some(22 | 27) => "ed25519".to_owned(),
        Some(28) => "ed448".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn armour(bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    let mut text = format!("{BEGIN}\n\n");
    for line in body.as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    let [_, high, middle, low] = checksum(bytes).to_be_bytes();
    let sum = STANDARD.encode([high, middle, low]);
    format!("{text}={sum}\n{END}\n")
}

/// The checksum of armoured text (CRC-24).
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum: u32 = 0x00b7_04ce;
    for byte in bytes {
        sum ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            sum <<= 1;
            if sum & 0x0100_0000 != 0 {
                sum ^= 0x0186_4cfb;
            }
        }
    }
    sum & 0x00ff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key packet of version 4 for `RSA` with this many bits, and a user id.
    fn key(owner: &str, bits: u16) -> Vec<u8> {
        let mut body = vec![4, 0, 0, 0, 1, 1];
        body.extend(bits.to_be_bytes());
        body.extend([0xff; 8]);
        let mut bytes = vec![0xc0 | PUBLIC_KEY, u8::try_from(body.len()).unwrap()];
        bytes.extend(body);
        bytes.extend([0xc0 | USER_ID, u8::try_from(owner.len()).unwrap()]);
        bytes.extend(owner.as_bytes());
        bytes
    }

    #[test]
    fn keys_are_told_apart() {
        let both = armour(&[key("Ann <ann@example.com>", 4096), key("Bob\u{1b}", 2048)].concat());
        let keys = read(&both).unwrap();
        assert_eq!(keys.len(), 2);
        assert_eq!((keys[0].owner.as_str(), keys[0].kind.as_str()), ("Ann <ann@example.com>", "rsa4096"));
        assert_eq!(keys[1].owner, "Bob", "no control characters");
        assert!(keys[0].fingerprint.ends_with(&keys[0].id) && keys[0].id.len() == 16);
        // Each alone is the same key again.
        assert_eq!(read(&keys[0].armoured).unwrap(), keys[..1]);
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        assert_eq!(read("hello").err(), Some(KeyError::NoBlock));
        assert_eq!(read(BEGIN).err(), Some(KeyError::Damaged));
        assert_eq!(read(&armour(&[0xc0 | 5, 1, 0])).err(), Some(KeyError::Private));
        assert_eq!(read(&armour(&[0xc0 | 6, 200])).err(), Some(KeyError::Damaged));
        assert_eq!(read(&armour(&[0xc0 | 6, 255, 255, 255, 255, 255])).err(), Some(KeyError::Damaged));
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(checksum(b"123456789"), 0x0021_cf02);
    }
}

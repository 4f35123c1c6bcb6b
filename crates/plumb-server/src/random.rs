//! Random values from the system.

use plumb_api::{Code, Status};

/// So many random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Status> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| Status::new(Code::Internal, "cannot get random numbers from the system"))?;
    Ok(bytes)
}

/// A random text of these letters.
pub(crate) fn text(letters: &[u8], length: usize) -> Result<String, Status> {
    let mut out = String::with_capacity(length);
    while out.len() < length {
        let [byte] = bytes::<1>()?;
        // Without the remainder, the first letters would be more likely.
        let usable = 256 / letters.len() * letters.len();
        if usize::from(byte) < usable
            && let Some(letter) = letters.get(usize::from(byte) % letters.len())
        {
            out.push(char::from(*letter));
        }
    }
    Ok(out)
}

/// A random identifier in the form of a UUID.
pub(crate) fn uuid() -> Result<String, Status> {
    let mut bytes = bytes::<16>()?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex(&bytes);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
}

/// Bytes as digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0f)]).collect()
}

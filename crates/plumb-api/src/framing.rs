//! The frames of gRPC and gRPC-Web: one byte of flags, the length in four bytes, the message.

/// The bytes before a message.
pub const FRAME_HEAD: usize = 5;
/// The flag of compressed messages, which no client of Argo CD sends.
const COMPRESSED: u8 = 1;
/// The flag of the frame with trailers that ends a stream of gRPC-Web.
const TRAILERS: u8 = 0x80;

/// A frame cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// plumb offers no compression.
    #[error("compressed messages are not supported")]
    Compressed,
    /// The message is larger than allowed.
    #[error("the message is larger than {0} bytes")]
    TooLarge(usize),
    /// The frame has flags that gRPC does not define.
    #[error("the frame is damaged")]
    Damaged,
}

/// A message as one frame.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRAME_HEAD + message.len());
    out.push(0);
    out.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(message);
    out
}

/// The first message of a buffer and the bytes that it took; `None` if it is not complete yet.
pub fn unframe(buffer: &[u8], largest: usize) -> Result<Option<(&[u8], usize)>, FrameError> {
    let Some((&[flags, a, b, c, d], rest)) = buffer.split_first_chunk::<FRAME_HEAD>() else {
        return Ok(None);
    };
    match flags {
        0 => {}
        COMPRESSED => return Err(FrameError::Compressed),
        _ => return Err(FrameError::Damaged),
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > largest {
        return Err(FrameError::TooLarge(largest));
    }
    Ok(rest.get(..length).map(|message| (message, FRAME_HEAD + length)))
}

/// The last frame of a stream of gRPC-Web.
pub fn trailer_frame(code: u32, message: &str) -> Vec<u8> {
    let text = format!("grpc-status: {code}\r\ngrpc-message: {}\r\n", grpc_message(message));
    let mut out = frame(text.as_bytes());
    if let Some(flags) = out.first_mut() {
        *flags = TRAILERS;
    }
    out
}

/// A message as a header holds it: only what is outside of printable ASCII is encoded, and the percent sign. Argo CD's
/// client does not decode it over gRPC-Web, so blanks must stay.
pub fn grpc_message(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' => out.push_str("%25"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.extend(format!("%{byte:02X}").chars()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back() {
        let two = [frame(b"one"), frame(b"")].concat();
        let (message, taken) = unframe(&two, 10).unwrap().unwrap();
        assert_eq!((message, taken), (&b"one"[..], 8));
        assert_eq!(unframe(&two[taken..], 10), Ok(Some((&b""[..], 5))));
        for end in 0..8 {
            assert_eq!(unframe(&two[..end], 10), Ok(None), "incomplete: {end} bytes");
        }
        assert_eq!(unframe(&two, 2), Err(FrameError::TooLarge(2)));
        assert_eq!(unframe(&[1, 0, 0, 0, 0], 2), Err(FrameError::Compressed));
        assert_eq!(unframe(&[9, 0, 0, 0, 0], 2), Err(FrameError::Damaged));
    }

    #[test]
    fn messages_are_encoded_as_little_as_possible() {
        assert_eq!(grpc_message("permission denied: 5% \n é"), "permission denied: 5%25 %0A %C3%A9");
    }
}

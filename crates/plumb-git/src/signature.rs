//! What gpg's status lines say about a signature.

/// The result of checking the signature of a commit, or of an annotated tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Signed by a known key.
    Good {
        /// The key's id (the last 16 digits of its fingerprint).
        key: String,
        /// The whole fingerprint.
        fingerprint: String,
        /// The fingerprint of its primary key; often its own.
        primary: String,
    },
    /// Signed by a key that is not in the keyring.
    UnknownKey {
        /// The key's id.
        key: String,
    },
    /// The signature does not match, or its key is expired or revoked.
    Bad {
        /// What gpg reports.
        reason: &'static str,
    },
    /// Not signed.
    None,
}

/// gpg's machine-readable lines, which `--raw` passes on.
pub(crate) fn parse_status(text: &str) -> Signature {
    let mut signature = Signature::None;
    let mut good = None;
    for line in text.lines().filter_map(|line| line.strip_prefix("[GNUPG:] ")) {
        let mut words = line.split(' ');
        match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
            ("GOODSIG", key) => good = Some(key.to_owned()),
            ("VALIDSIG", fingerprint) => {
                if let Some(key) = good.take() {
                    let primary = words.next_back().unwrap_or(fingerprint).to_owned();
                    signature = Signature::Good { key, fingerprint: fingerprint.to_owned(), primary };
                }
            }
            ("ERRSIG" | "NO_PUBKEY", key) => signature = Signature::UnknownKey { key: key.to_owned() },
            ("BADSIG", _) => return Signature::Bad { reason: "it does not match the commit" },
            ("EXPSIG", _) => return Signature::Bad { reason: "it has expired" },
            ("EXPKEYSIG", _) => return Signature::Bad { reason: "its key has expired" },
            ("REVKEYSIG", _) => return Signature::Bad { reason: "its key was revoked" },
            _ => {}
        }
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_gpg_are_understood() {
        let good = "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 0123456789ABCDEF Somebody\n[GNUPG:] VALIDSIG \
                    FFFF0123456789ABCDEF 2026-01-01 1 0 4 0 1 10 00 EEEE\n";
        let expected = Signature::Good {
            key: "0123456789ABCDEF".to_owned(),
            fingerprint: "FFFF0123456789ABCDEF".to_owned(),
            primary: "EEEE".to_owned(),
        };
        assert_eq!(parse_status(good), expected);
        assert_eq!(parse_status(""), Signature::None);
        assert_eq!(
            parse_status("[GNUPG:] ERRSIG ABC 1 8 00 1 9\n[GNUPG:] NO_PUBKEY ABC\n"),
            Signature::UnknownKey { key: "ABC".to_owned() }
        );
        assert!(matches!(parse_status("[GNUPG:] GOODSIG A x\n[GNUPG:] BADSIG A x\n"), Signature::Bad { .. }));
        // A good signature needs both lines: the first alone does not prove that the data is valid.
        assert_eq!(parse_status("[GNUPG:] GOODSIG A x\n"), Signature::None);
    }
}

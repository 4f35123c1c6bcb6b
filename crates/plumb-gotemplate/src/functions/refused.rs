//! Functions that Sprig has and plumb refuses. They create private keys, certificates and salted hashes: a new one with
//! each rendering would change the object each time, and one that stays the same could be guessed from the inputs.
//! `derivePassword`, `decryptAES` and `buildCustomCert` always give the same value, but their keys would be in the set.

use super::table::{Call, Row, Type};
use crate::budget::Fault;

const ANY: Option<Type> = Some(Type::Any);

const REFUSE: Call = |_, _| {
    Err(Fault::new(
        "plumb refuses functions that create keys, certificates and password hashes; \
         create them outside the template and refer to the Secret",
    ))
};

pub(super) const ROWS: &[Row] = &[
    ("genPrivateKey", &[], ANY, REFUSE),
    ("genCA", &[], ANY, REFUSE),
    ("genCAWithKey", &[], ANY, REFUSE),
    ("genSelfSignedCert", &[], ANY, REFUSE),
    ("genSelfSignedCertWithKey", &[], ANY, REFUSE),
    ("genSignedCert", &[], ANY, REFUSE),
    ("genSignedCertWithKey", &[], ANY, REFUSE),
    ("buildCustomCert", &[], ANY, REFUSE),
    ("derivePassword", &[], ANY, REFUSE),
    ("bcrypt", &[], ANY, REFUSE),
    ("htpasswd", &[], ANY, REFUSE),
    ("encryptAES", &[], ANY, REFUSE),
    ("decryptAES", &[], ANY, REFUSE),
];

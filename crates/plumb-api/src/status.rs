//! The answer to a call that failed: one of gRPC's codes and a text.

use std::fmt;

/// The codes of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The client left.
    Canceled = 1,
    /// No other code fits.
    Unknown = 2,
    /// The request is wrong by itself.
    InvalidArgument = 3,
    /// It took too long.
    DeadlineExceeded = 4,
    /// There is no such thing.
    NotFound = 5,
    /// It exists.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A limit is reached.
    ResourceExhausted = 8,
    /// The state of things does not allow it.
    FailedPrecondition = 9,
    /// Another writer was faster.
    Aborted = 10,
    /// A value is outside of its range.
    OutOfRange = 11,
    /// plumb has no such call.
    Unimplemented = 12,
    /// A defect.
    Internal = 13,
    /// Not now.
    Unavailable = 14,
    /// Data are lost.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

impl Code {
    /// The number on the wire.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The status of HTTP that Argo CD's REST door answers with.
    pub fn http(self) -> u16 {
        match self {
            Self::Canceled => 408,
            Self::Unknown | Self::Internal | Self::DataLoss => 500,
            Self::InvalidArgument | Self::FailedPrecondition | Self::OutOfRange => 400,
            Self::DeadlineExceeded => 504,
            Self::NotFound => 404,
            Self::PermissionDenied => 403,
            Self::Unauthenticated => 401,
            Self::ResourceExhausted => 429,
            Self::Unimplemented => 501,
            Self::Unavailable => 503,
            Self::AlreadyExists | Self::Aborted => 409,
        }
    }

    /// The name as gRPC writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Canceled => "Canceled",
            Self::Unknown => "Unknown",
            Self::InvalidArgument => "InvalidArgument",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::PermissionDenied => "PermissionDenied",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::FailedPrecondition => "FailedPrecondition",
            Self::Aborted => "Aborted",
            Self::OutOfRange => "OutOfRange",
            Self::Unimplemented => "Unimplemented",
            Self::Internal => "Internal",
            Self::Unavailable => "Unavailable",
            Self::DataLoss => "DataLoss",
            Self::Unauthenticated => "Unauthenticated",
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The class of failures.
    pub code: Code,
    /// The text for the user.
    pub message: String,
}

impl Status {
    /// A failure of this class.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The request is wrong by itself.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// The one answer for what the caller may not do or see.
    pub fn denied() -> Self {
        Self::new(Code::PermissionDenied, "permission denied")
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// The state of things does not allow it.
    pub fn precondition(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, message)
    }

    /// The caller is not known.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(Code::Unauthenticated, message)
    }

    /// Not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for Status {}

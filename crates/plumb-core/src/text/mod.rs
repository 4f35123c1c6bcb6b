//! Text that others wrote, made safe to show: hidden characters become visible, and secrets are blanked.

mod names;
mod redact;
mod visible;
mod written;

pub use names::is_secret_name;
pub use redact::{BLANK, redact, redact_lines, redact_text, without_logins};
pub use visible::{is_hidden, one_line, visible_lines};
pub use written::without_texts;

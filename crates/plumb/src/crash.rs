//! What is said when plumb panics: where, and never with which values.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use crate::output;

/// Messages of the standard library that quote numbers only.
const OF_NUMBERS: [&str; 4] =
    ["index out of bounds: ", "attempt to ", "range start index ", "range end index "];

/// Replaces the message that Rust prints. It can quote the text that plumb worked on, such as a Secret.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        output::note(&described(info, thread.name().unwrap_or("without a name")));
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            output::note(&backtrace.to_string());
        }
    }));
}

fn described(info: &PanicHookInfo<'_>, thread: &str) -> String {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let payload = info.payload();
    let message = match (payload.downcast_ref::<&'static str>(), payload.downcast_ref::<String>()) {
        // It is a part of the program.
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) if OF_NUMBERS.iter().any(|start| text.starts_with(start)) => text.clone(),
        _ => "the message is left out, because it can quote values".to_owned(),
    };
    format!(
        "error: a defect of plumb: panic at {place} in thread {thread}: {message}\n\
         hint: RUST_BACKTRACE=1 prints how plumb got there; please report it"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What is said about a panic of this function.
    fn said(panics: impl FnOnce() + Send + 'static) -> String {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock();
        let said = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&said);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            *sink.lock().expect("the text") = described(info, "a test");
        }));
        let ended = std::thread::spawn(panics).join();
        std::panic::set_hook(before);
        assert!(ended.is_err(), "it did not panic");
        let said = said.lock().expect("the text").clone();
        assert!(said.contains("crash.rs:") && said.contains("in thread a test"), "{said}");
        said
    }

    #[test]
    fn a_panic_says_where_and_no_value() {
        let value = || String::from("hunter2");
        let number: Result<(), String> = std::hint::black_box(Err(value()));
        let failed = said(move || number.expect("a number"));
        let formatted = said(move || panic!("cannot read {}", value()));
        for text in [&failed, &formatted] {
            assert!(text.contains("is left out") && !text.contains("hunter2"), "{text}");
        }
        let literal = said(|| panic!("no app"));
        assert!(literal.contains(": no app\n"), "{literal}");
        let index = said(|| panic!("index out of bounds: the len is {}", std::hint::black_box(1)));
        assert!(index.contains("the len is 1"), "{index}");
    }
}

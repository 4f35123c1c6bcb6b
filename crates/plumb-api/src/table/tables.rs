//! All tables, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::message::{Message, MessageId};
use super::method::Method;
use super::parse::{self, TableError};

/// All messages and calls.
#[derive(Debug)]
pub struct Tables {
    pub(super) messages: Vec<Message>,
    pub(super) methods: Vec<Method>,
    by_name: HashMap<String, MessageId>,
    by_path: HashMap<String, usize>,
}

/// The tables are part of the program; a test reads them all.
static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables::read().unwrap_or_else(|_| Tables::empty()));

impl Tables {
    /// The tables of this program.
    pub fn get() -> &'static Self {
        &TABLES
    }

    fn empty() -> Self {
        Self { messages: Vec::new(), methods: Vec::new(), by_name: HashMap::new(), by_path: HashMap::new() }
    }

    fn read() -> Result<Self, TableError> {
        let texts = [
            include_str!("../tables/kubernetes.txt"),
            include_str!("../tables/objects.txt"),
            include_str!("../tables/requests.txt"),
        ];
        let messages = parse::messages(&texts)?;
        let by_name: HashMap<String, MessageId> = messages
            .iter()
            .enumerate()
            .map(|(index, message)| (message.name.clone(), MessageId(index)))
            .collect();
        let methods = parse::methods(include_str!("../tables/methods.txt"), &by_name)?;
        let by_path =
            methods.iter().enumerate().map(|(index, method)| (method.path.clone(), index)).collect();
        Ok(Self { messages, methods, by_name, by_path })
    }

    /// All calls.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// The call with this path in gRPC: `package.Service/Method`.
    pub fn method(&self, path: &str) -> Option<&Method> {
        self.by_path.get(path).and_then(|index| self.methods.get(*index))
    }

    /// A message. Every id that the tables hand out has one.
    pub fn message(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(id.0)
    }

    /// The id of a message by its name, such as `v1alpha1.Application`.
    pub fn id(&self, name: &str) -> Option<MessageId> {
        self.by_name.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_can_be_read() {
        let tables = Tables::read().unwrap();
        assert_eq!(tables.methods.len(), 110);
        let rules: usize = tables.methods.iter().map(|method| method.rules.len()).sum();
        assert_eq!(rules, 111);
        for message in &tables.messages {
            for pair in message.fields.windows(2) {
                assert!(pair[0].number < pair[1].number, "{}: {} twice", message.name, pair[1].number);
            }
        }
        assert!(tables.method("application.ApplicationService/Watch").unwrap().server_streams);
    }
}

//! The compiled lines of a policy, and the decision over them for one subject.

use std::collections::{BTreeSet, HashMap};

use crate::rbac::csv;
use crate::rbac::pattern::{MatchMode, Matched, Pattern};
use crate::rbac::request::Request;

/// A subject has the roles that a chain of so many `g` lines leads to.
const LONGEST_CHAIN: usize = 10;

/// A line that cannot be read. Argo CD then refuses every request; plumb keeps the last policy that could be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the policy is invalid: {reason}")]
pub struct PolicyProblem {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Lines of a policy by the subjects that they name.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    mode: MatchMode,
    permissions: HashMap<String, Lines>,
    /// From the first name of a `g` line to its second ones.
    links: HashMap<String, Vec<String>>,
}

/// The `p` lines of one subject. Their order means nothing: one line that denies outweighs all that allow.
#[derive(Clone, Debug, Default)]
struct Lines {
    /// Those for one kind of thing, by its name.
    of_one: HashMap<String, Vec<Permission>>,
    /// Those whose resource is a pattern.
    of_several: Vec<Permission>,
}

impl Lines {
    fn add(&mut self, permission: Permission) {
        match &permission.resource {
            Pattern::Exactly(resource) => {
                self.of_one.entry(resource.clone()).or_default().push(permission);
            }
            _ => self.of_several.push(permission),
        }
    }

    /// The lines that may apply to a kind of thing.
    fn about(&self, resource: &str) -> impl Iterator<Item = &Permission> {
        self.of_one.get(resource).into_iter().flatten().chain(&self.of_several)
    }
}

/// One `p` line without its subject.
#[derive(Clone, Debug)]
struct Permission {
    resource: Pattern,
    action: Pattern,
    object: Pattern,
    effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Allow,
    Deny,
    /// Any other word: the line decides nothing.
    Neither,
}

/// One line that has a meaning.
pub(super) enum Line {
    Permission { subject: String, resource: String, action: String, object: String, effect: String },
    Link { member: String, role: String },
}

impl Policy {
    /// Reads the lines of a policy.
    pub fn parse(text: &str, mode: MatchMode) -> Result<Self, PolicyProblem> {
        let mut policy = Self { mode, ..Self::default() };
        for (index, line) in text.lines().enumerate() {
            if let Some(line) = read_line(line).map_err(|reason| PolicyProblem { line: index + 1, reason })? {
                policy.add(line);
            }
        }
        Ok(policy)
    }

    pub(super) fn add(&mut self, line: Line) {
        match line {
            Line::Permission { subject, resource, action, object, effect } => {
                let compile = |text: &str| Pattern::new(text, self.mode);
                let permission = Permission {
                    resource: compile(&resource),
                    action: compile(&action),
                    object: compile(&object),
                    effect: match effect.as_str() {
                        "allow" => Effect::Allow,
                        "deny" => Effect::Deny,
                        _ => Effect::Neither,
                    },
                };
                self.permissions.entry(subject).or_default().add(permission);
            }
            Line::Link { member, role } => self.links.entry(member).or_default().push(role),
        }
    }

    pub(super) fn mode(&self) -> MatchMode {
        self.mode
    }
}

/// One line of a policy. Empty lines and comments have no meaning, and neither have lines of casbin's own model.
pub(super) fn read_line(line: &str) -> Result<Option<Line>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let fields = csv::fields(line).map_err(str::to_owned)?;
    let count = fields.len();
    let mut fields = fields.into_iter();
    let kind = fields.next().unwrap_or_default();
    let mut next = || fields.next().unwrap_or_default();
    match kind.as_str() {
        "p" if count == 6 => Ok(Some(Line::Permission {
            subject: next(),
            resource: next(),
            action: next(),
            object: next(),
            effect: next(),
        })),
        "p" => Err(format!(
            "a `p` line has 6 fields, not {count}: p, subject, resource, action, object, allow or deny"
        )),
        "g" if count == 3 => Ok(Some(Line::Link { member: next(), role: next() })),
        "g" => Err(format!("a `g` line has 3 fields, not {count}: g, user or group, role")),
        "e" | "r" | "m" => Ok(None),
        other => Err(format!("it begins with `{other}`, and not with `p` or `g`")),
    }
}

/// One or two policies that count together: the global one, and that of the object's project.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policies<'a> {
    pub(super) base: &'a Policy,
    pub(super) project: Option<&'a Policy>,
}

/// What the lines of a name say about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Allowed,
    /// A line denies it, or one cannot be read.
    Denied,
    Nothing,
}

/// The names that were judged for one request: a role that a user and several groups have is judged once.
pub(super) type Judged<'p> = HashMap<&'p str, Judgement>;

impl<'a> Policies<'a> {
    fn each(self) -> impl Iterator<Item = &'a Policy> {
        std::iter::once(self.base).chain(self.project)
    }

    /// True if some `g` line begins with this name.
    pub(super) fn is_member(self, name: &str) -> bool {
        self.each().any(|policy| policy.links.contains_key(name))
    }

    /// The decision for one subject and its roles: some line allows, and none denies.
    pub(super) fn allow(self, subject: &'a str, request: &Request<'_>, judged: &mut Judged<'a>) -> bool {
        let mut allowed = false;
        for name in self.names_of(subject) {
            match *judged.entry(name).or_insert_with(|| self.judge(name, request)) {
                Judgement::Denied => return false,
                Judgement::Allowed => allowed = true,
                Judgement::Nothing => {}
            }
        }
        allowed
    }

    /// What the lines of one name say.
    fn judge(self, name: &str, request: &Request<'_>) -> Judgement {
        let mut said = Judgement::Nothing;
        for policy in self.each() {
            let lines = policy.permissions.get(name).into_iter();
            for permission in lines.flat_map(|lines| lines.about(request.resource)) {
                match (permission.applies(policy.mode, request), permission.effect) {
                    (Matched::Unreadable, _) | (Matched::Yes, Effect::Deny) => return Judgement::Denied,
                    (Matched::Yes, Effect::Allow) => said = Judgement::Allowed,
                    (Matched::Yes, Effect::Neither) | (Matched::No, _) => {}
                }
            }
        }
        said
    }

    /// The subject and every role that a chain of `g` lines leads to.
    fn names_of(self, subject: &'a str) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::from([subject]);
        let mut newest = vec![subject];
        for _ in 0..LONGEST_CHAIN {
            let reached: Vec<&str> = newest
                .iter()
                .flat_map(|name| self.each().filter_map(|policy| policy.links.get(*name)))
                .flatten()
                .map(String::as_str)
                .filter(|role| !names.contains(role))
                .collect();
            if reached.is_empty() {
                break;
            }
            names.extend(&reached);
            newest = reached;
        }
        names
    }
}

impl Permission {
    /// The words are compared in this order, and the first that differs ends it: a pattern behind it is not read.
    fn applies(&self, mode: MatchMode, request: &Request<'_>) -> Matched {
        let Request { resource, action, object } = *request;
        [(&self.resource, resource), (&self.action, action), (&self.object, object)]
            .into_iter()
            .map(|(pattern, word)| pattern.matches(word, mode))
            .find(|matched| *matched != Matched::Yes)
            .unwrap_or(Matched::Yes)
    }
}

//! jq paths, in the part of the language that always ends.
//!
//! Any user who may write an Application can set an expression, and it runs inside the controller. So it is
//! checked before it is compiled: no recursion, no definitions, no loops, nothing that reads the world, and a
//! bound on nested iteration. What passes takes time that is polynomial in the size of the object, with no
//! clock to watch.

use jaq_core::data::JustLut;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::load::{Arena, File, Loader};
use jaq_core::path::Part;
use jaq_core::{Compiler, Ctx, Filter, Vars, ops, unwrap_valr};
use jaq_json::Val;
use serde_json::Value;

use crate::object::{FieldPath, Segment};

/// Longest accepted expression.
const MAX_LENGTH: usize = 2_000;
/// Deepest accepted nesting of brackets.
const MAX_NESTING: usize = 40;
/// Most iterations (`[]`, `..`) inside each other.
const MAX_ITERATIONS: usize = 6;
/// Most places that one expression may name.
const MAX_PLACES: usize = 1_000;

/// A compiled jq path.
pub(super) struct JqPath {
    filter: Filter<JustLut<Val>>,
}

impl JqPath {
    /// Checks and compiles an expression.
    pub(super) fn compile(expression: &str) -> Result<Self, String> {
        check_text(expression)?;
        let term = jaq_core::load::parse(expression, |parser| parser.term())
            .ok_or_else(|| "it is not a jq expression".to_owned())?;
        let iterations = check(&term)?;
        if iterations > MAX_ITERATIONS {
            return Err(format!("it iterates {iterations} times, at most {MAX_ITERATIONS} are allowed"));
        }
        let code = format!("path({expression})");
        let arena = Arena::default();
        let loader = Loader::new(jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()));
        let modules = loader
            .load(&arena, File { path: (), code: code.as_str() })
            .map_err(|_| "it is not a jq expression".to_owned())?;
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let filter = Compiler::default()
            .with_funs(funs)
            .compile(modules)
            .map_err(|_| "it uses a name that is not defined".to_owned())?;
        Ok(Self { filter })
    }

    /// The places that the expression names in this value. An expression that fails names none: `.a.b` on an
    /// object without `a` is not an error.
    pub(super) fn places(&self, value: &Value) -> Vec<FieldPath> {
        let Ok(input) = serde_json::from_value::<Val>(value.clone()) else { return Vec::new() };
        let context = Ctx::<JustLut<Val>>::new(&self.filter.lut, Vars::new([]));
        self.filter
            .id
            .run((context, input))
            .map(unwrap_valr)
            .take(MAX_PLACES)
            .map_while(Result::ok)
            .filter_map(|path| field_path(&path))
            .collect()
    }
}

fn field_path(path: &Val) -> Option<FieldPath> {
    let Val::Arr(segments) = path else { return None };
    let segments: Option<Vec<Segment>> = segments
        .iter()
        .map(|segment| match segment {
            Val::TStr(text) | Val::BStr(text) => {
                Some(Segment::Field(String::from_utf8_lossy(text.as_ref()).into()))
            }
            Val::Num(number) => number.to_string().parse().ok().map(Segment::Index),
            Val::Null | Val::Bool(_) | Val::Arr(_) | Val::Obj(_) => None,
        })
        .collect();
    segments.map(FieldPath::from)
}

/// The parser is recursive, so depth is bounded before it runs.
fn check_text(expression: &str) -> Result<(), String> {
    if expression.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} characters"));
    }
    let mut depth = 0_usize;
    for c in expression.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(format!("it nests deeper than {MAX_NESTING} brackets"));
        }
    }
    Ok(())
}

/// Functions that end, and look at nothing but their input.
const FUNCTIONS: [&str; 45] = [
    "all",
    "any",
    "arrays",
    "ascii_downcase",
    "ascii_upcase",
    "booleans",
    "contains",
    "empty",
    "endswith",
    "false",
    "first",
    "getpath",
    "has",
    "in",
    "index",
    "inside",
    "isarray",
    "isboolean",
    "isnumber",
    "isobject",
    "isstring",
    "iterables",
    "keys",
    "last",
    "length",
    "ltrimstr",
    "map",
    "not",
    "null",
    "nulls",
    "numbers",
    "objects",
    "path",
    "recurse",
    "rtrimstr",
    "scalars",
    "select",
    "split",
    "startswith",
    "strings",
    "test",
    "tostring",
    "true",
    "type",
    "values",
];

fn all<'t, 's: 't>(terms: impl Iterator<Item = &'t Term<&'s str>>) -> Result<usize, String> {
    let mut total = 0;
    for term in terms {
        total += check(term)?;
    }
    Ok(total)
}

/// How many iterations are nested at most; an error names what is not allowed. Long because it has one arm for each
/// syntax node of jq.
fn check(term: &Term<&str>) -> Result<usize, String> {
    match term {
        Term::Id | Term::Num(_) | Term::Var(_) => Ok(0),
        Term::Recurse => Ok(1),
        Term::Str(_, parts) => all(parts.iter().filter_map(|part| match part {
            jaq_core::load::lex::StrPart::Term(term) => Some(term),
            jaq_core::load::lex::StrPart::Str(_) | jaq_core::load::lex::StrPart::Char(_) => None,
        })),
        Term::Arr(items) => all(items.iter().map(AsRef::as_ref)),
        Term::Obj(fields) => {
            all(fields.iter().flat_map(|(key, value)| std::iter::once(key).chain(value.as_ref())))
        }
        Term::Neg(term) => check(term),
        Term::BinOp(left, operator, right) => {
            match operator {
                BinaryOp::Pipe(None | Some(Pattern::Var(_)))
                | BinaryOp::Comma
                | BinaryOp::Alt
                | BinaryOp::Or
                | BinaryOp::And
                | BinaryOp::Cmp(_)
                | BinaryOp::Math(ops::Math::Add | ops::Math::Sub) => {}
                BinaryOp::Pipe(Some(Pattern::Arr(_) | Pattern::Obj(_))) => {
                    return Err("patterns are not allowed".to_owned());
                }
                BinaryOp::Math(_) => return Err("only + and - are allowed".to_owned()),
                BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                    return Err("assignments are not allowed".to_owned());
                }
            }
            Ok(check(left)? + check(right)?)
        }
        Term::TryCatch(body, handler) => all(std::iter::once(body).chain(handler).map(AsRef::as_ref)),
        Term::IfThenElse(branches, otherwise) => all(branches
            .iter()
            .flat_map(|(condition, then)| [condition, then])
            .chain(otherwise.iter().map(AsRef::as_ref))),
        Term::Call(name, arguments) => {
            if !FUNCTIONS.contains(name) || (*name == "recurse" && !arguments.is_empty()) {
                return Err(format!("the function `{name}` is not allowed"));
            }
            let own = usize::from(matches!(*name, "recurse" | "map" | "any" | "all"));
            Ok(own + all(arguments.iter())?)
        }
        Term::Path(term, path) => {
            let mut total = check(term)?;
            for (part, _) in &path.0 {
                match part {
                    Part::Index(index) => total += check(index)?,
                    Part::Range(from, to) => {
                        total += 1 + all(from.iter().chain(to))?;
                    }
                }
            }
            Ok(total)
        }
        Term::Label(..) | Term::Break(_) | Term::Fold(..) | Term::Def(..) => {
            Err("definitions and loops are not allowed".to_owned())
        }
    }
}

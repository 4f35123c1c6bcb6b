//! What a script sees, made anew for each run.

use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, Table, Value, Variadic};

use crate::error::Limit;
use crate::sandbox::{Libraries, Spent};

/// Functions of the base library that touch nothing but their arguments.
const BASE: &[&str] = &[
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "next",
    "pairs",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "setmetatable",
    "tonumber",
    "tostring",
    "type",
    "unpack",
];

/// The part of `os` that only tells the time.
const CLOCK: &[&str] = &["clock", "date", "difftime", "time"];

/// Functions of `string` that search with a pattern.
const SEARCHES: &[&str] = &["find", "gmatch", "gsub", "match"];

/// A search may try so many steps. Lua searches in C, where the limits on time cannot stop it.
const MAX_SEARCH: f64 = 1e9;

/// The originals from which fresh globals are copied.
pub(crate) struct Globals {
    functions: Vec<(String, Function)>,
    tables: Vec<(&'static str, Vec<(String, Value)>)>,
    clock: Vec<(String, Value)>,
    tie: Function,
}

/// Gives globals their `require` and `loadstring`. It is written in Lua because a Rust function that holds a table of
/// one run, and is held by it, would never be collected.
const TIE: &str = r"
local missing, load = ...
return function(globals, modules)
  globals.require = function(name)
    local module = modules[name]
    if module == nil then missing(name) end
    return module
  end
  globals.loadstring = function(source) return load(source, globals) end
end";

impl Globals {
    pub(crate) fn new(lua: &Lua, libraries: Libraries, spent: &Rc<Spent>) -> mlua::Result<Self> {
        let original = lua.globals();
        let mut functions = Vec::new();
        for name in BASE {
            functions.push(((*name).to_owned(), original.get::<Function>(*name)?));
        }
        functions.push(("pcall".to_owned(), protected_call(lua, spent)?));
        functions.push(("xpcall".to_owned(), protected_call_with_handler(lua, spent)?));
        // There is nobody to print to, and nothing to collect by hand.
        functions.push(("print".to_owned(), lua.create_function(|_, _: MultiValue| Ok(()))?));
        functions.push(("collectgarbage".to_owned(), lua.create_function(|_, _: MultiValue| Ok(0))?));

        let clock: Vec<(String, Value)> = entries(&original.get("os")?)?
            .into_iter()
            .filter(|(name, _)| CLOCK.contains(&name.as_str()))
            .collect();
        let mut tables = vec![("table", entries(&original.get("table")?)?)];
        if libraries == Libraries::Open {
            let string: Table = original.get("string")?;
            guard_searches(lua, &string, spent)?;
            // `("text"):upper()` goes through the metatable of strings, which all runs share: out of reach.
            lua.load("getmetatable('').__metatable = false").exec()?;
            let mut string = entries(&string)?;
            string.retain(|(name, _)| name != "dump");
            tables.push(("string", string));
            tables.push(("math", entries(&original.get("math")?)?));
            tables.push(("coroutine", guarded_coroutines(lua, &original.get("coroutine")?, spent)?));
            tables.push(("os", clock.clone()));
        }
        let missing = lua.create_function(|_, name: Value| -> mlua::Result<()> {
            Err(mlua::Error::runtime(format!("module {} not found", name.to_string()?)))
        })?;
        let load = lua.create_function(|lua, (source, globals): (mlua::LuaString, Table)| {
            let source = source.as_bytes().to_vec();
            let chunk = lua.load(source).set_name("=loadstring").set_mode(ChunkMode::Text);
            chunk.set_environment(globals).into_function()
        })?;
        let tie = lua.load(TIE).set_name("=tie").call((missing, load))?;
        Ok(Self { functions, tables, clock, tie })
    }

    /// New globals that share nothing that can be changed with those of other runs.
    pub(crate) fn fresh(&self, lua: &Lua) -> mlua::Result<Table> {
        let n_globals = self.functions.len() + self.tables.len() + 8;
        let globals = lua.create_table_with_capacity(0, n_globals)?;
        for (name, function) in &self.functions {
            globals.raw_set(name.as_str(), function)?;
        }
        let modules = lua.create_table()?;
        for (name, entries) in &self.tables {
            let table = filled(lua, entries)?;
            globals.raw_set(*name, &table)?;
            modules.raw_set(*name, table)?;
        }
        modules.raw_set("os", filled(lua, &self.clock)?)?;
        let package = lua.create_table()?;
        package.raw_set("loaded", &modules)?;
        package.raw_set("preload", lua.create_table()?)?;
        globals.raw_set("package", package)?;
        self.tie.call::<()>((&globals, &modules))?;
        globals.raw_set("_G", &globals)?;
        globals.raw_set("_VERSION", "Lua 5.1")?;
        Ok(globals)
    }
}

fn entries(table: &Table) -> mlua::Result<Vec<(String, Value)>> {
    table.pairs::<String, Value>().collect()
}

fn filled(lua: &Lua, entries: &[(String, Value)]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, entries.len())?;
    for (name, value) in entries {
        table.raw_set(name.as_str(), value)?;
    }
    Ok(table)
}

/// `pcall` that cannot be used to outlive a limit: once one is passed, no error is caught any more.
fn protected_call(lua: &Lua, spent: &Rc<Spent>) -> mlua::Result<Function> {
    let spent = Rc::clone(spent);
    lua.create_function(move |lua, (function, arguments): (Value, MultiValue)| {
        caught(lua, &spent, call(&function, arguments), None)
    })
}

fn protected_call_with_handler(lua: &Lua, spent: &Rc<Spent>) -> mlua::Result<Function> {
    let spent = Rc::clone(spent);
    lua.create_function(move |lua, (function, handler): (Value, Function)| {
        caught(lua, &spent, call(&function, MultiValue::new()), Some(&handler))
    })
}

fn call(function: &Value, arguments: MultiValue) -> mlua::Result<MultiValue> {
    match function {
        Value::Function(function) => function.call(arguments),
        other => Err(mlua::Error::runtime(format!("attempt to call a {} value", other.type_name()))),
    }
}

fn caught(
    lua: &Lua,
    spent: &Spent,
    outcome: mlua::Result<MultiValue>,
    handler: Option<&Function>,
) -> mlua::Result<MultiValue> {
    if let Some(limit) = spent.passed() {
        return Err(spent.pass(limit));
    }
    match outcome {
        Ok(mut values) => {
            values.push_front(Value::Boolean(true));
            Ok(values)
        }
        Err(error) => {
            let message = Value::String(lua.create_string(error.to_string())?);
            let mut values = match handler {
                Some(handler) => handler.call(message)?,
                None => MultiValue::from_iter([message]),
            };
            values.push_front(Value::Boolean(false));
            Ok(values)
        }
    }
}

/// `coroutine.resume` catches errors like `pcall`; `wrap` does not.
fn guarded_coroutines(lua: &Lua, table: &Table, spent: &Rc<Spent>) -> mlua::Result<Vec<(String, Value)>> {
    let mut entries = entries(table)?;
    for (name, value) in &mut entries {
        if name != "resume" {
            continue;
        }
        if let Value::Function(resume) = value.clone() {
            let spent = Rc::clone(spent);
            *value = Value::Function(lua.create_function(move |_, arguments: MultiValue| {
                let values: MultiValue = resume.call(arguments)?;
                match spent.passed() {
                    Some(limit) => Err(spent.pass(limit)),
                    None => Ok(values),
                }
            })?);
        }
    }
    Ok(entries)
}

/// Puts a check before each search, in the table that the metatable of strings uses.
fn guard_searches(lua: &Lua, string: &Table, spent: &Rc<Spent>) -> mlua::Result<()> {
    for name in SEARCHES {
        let search: Function = string.get(*name)?;
        let spent = Rc::clone(spent);
        let guarded = lua.create_function(move |_, arguments: Variadic<Value>| {
            if let [Value::String(text), Value::String(pattern), ..] = arguments.as_slice()
                && steps(&text.as_bytes(), &pattern.as_bytes()) > MAX_SEARCH
            {
                return Err(spent.pass(Limit::Size));
            }
            search.call::<MultiValue>(arguments)
        })?;
        string.set(*name, guarded)?;
    }
    Ok(())
}

/// At most so many steps a search may take: each repetition may try every end for every start.
fn steps(text: &[u8], pattern: &[u8]) -> f64 {
    let n_repetitions = pattern.iter().filter(|byte| matches!(byte, b'*' | b'+' | b'-')).count();
    let starts = usize::from(pattern.first() != Some(&b'^'));
    let exponent = i32::try_from(n_repetitions + starts).unwrap_or(i32::MAX);
    let length = u32::try_from(text.len()).map_or(f64::MAX, f64::from);
    length.max(1.0).powi(exponent)
}

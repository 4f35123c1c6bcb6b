//! The globals of a script, created for each run.

use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, Table, Value, Variadic};

use crate::error::Limit;
use crate::limits::{Libraries, Usage};

/// Functions of the base library that access only their arguments.
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

/// The part of `os` that only reads the time.
const CLOCK: &[&str] = &["clock", "date", "difftime", "time"];

/// Functions of `string` that search with a pattern.
const SEARCHES: &[&str] = &["find", "gmatch", "gsub", "match"];

/// Most steps of a search. Lua searches in C, where the time limit cannot stop it.
const MAX_SEARCH: f64 = 1e9;

/// Creates fresh globals from the originals.
pub(crate) struct Globals {
    make: Function,
}

/// Copies the originals, binds `require` and `loadstring` to the copy, and adds the inputs. It is written in Lua because
/// a Rust function and a table that refer to each other would never be collected, and because setting some dozen fields
/// from Rust costs more than most scripts.
const MAKE: &str = r#"
local missing, load, functions, tables, clock = ...
local next = next
local function copy(from)
  local to = {}
  for name, value in next, from do to[name] = value end
  return to
end
return function(obj, params)
  local globals, modules = copy(functions), {}
  for name, entries in next, tables do
    local module = copy(entries)
    globals[name], modules[name] = module, module
  end
  modules.os = modules.os or copy(clock)
  globals.require = function(name)
    local module = modules[name]
    if module == nil then missing(name) end
    return module
  end
  globals.loadstring = function(source) return load(source, globals) end
  globals.package = {loaded = modules, preload = {}}
  globals._G, globals._VERSION = globals, "Lua 5.1"
  globals.obj, globals.actionParams = obj, params
  return globals
end"#;

impl Globals {
    pub(crate) fn new(lua: &Lua, libraries: Libraries, usage: &Rc<Usage>) -> mlua::Result<Self> {
        let original = lua.globals();
        let functions = lua.create_table()?;
        for name in BASE {
            functions.raw_set(*name, original.get::<Function>(*name)?)?;
        }
        functions.raw_set("pcall", protected_call(lua, usage)?)?;
        functions.raw_set("xpcall", protected_call_with_handler(lua, usage)?)?;
        // Scripts have no output, and collection is automatic.
        functions.raw_set("print", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
        functions.raw_set("collectgarbage", lua.create_function(|_, _: MultiValue| Ok(0))?)?;

        let clock = lua.create_table()?;
        let os: Table = original.get("os")?;
        for name in CLOCK {
            clock.raw_set(*name, os.get::<Function>(*name)?)?;
        }
        let tables = lua.create_table()?;
        tables.raw_set("table", original.get::<Table>("table")?)?;
        if libraries == Libraries::Open {
            let string: Table = original.get("string")?;
            guard_searches(lua, &string, usage)?;
            string.set("dump", Value::Nil)?;
            // `("text"):upper()` uses the metatable of strings, which all runs share, so scripts must not change it.
            lua.load("getmetatable('').__metatable = false").exec()?;
            let coroutine: Table = original.get("coroutine")?;
            guard_coroutines(lua, &coroutine, usage)?;
            tables.raw_set("string", string)?;
            tables.raw_set("math", original.get::<Table>("math")?)?;
            tables.raw_set("coroutine", coroutine)?;
            tables.raw_set("os", &clock)?;
        }
        let missing = lua.create_function(|_, name: Value| -> mlua::Result<()> {
            Err(mlua::Error::runtime(format!("module {} not found", name.to_string()?)))
        })?;
        let load = lua.create_function(|lua, (source, globals): (mlua::LuaString, Table)| {
            let source = source.as_bytes().to_vec();
            let chunk = lua.load(source).set_name("=loadstring").set_mode(ChunkMode::Text);
            chunk.set_environment(globals).into_function()
        })?;
        let make = lua.load(MAKE).set_name("=globals").call((missing, load, functions, tables, clock))?;
        Ok(Self { make })
    }

    /// New globals that share no mutable state with other runs.
    pub(crate) fn fresh(&self, object: Value, params: Table) -> mlua::Result<Table> {
        self.make.call((object, params))
    }
}

/// `pcall` that does not catch the error of an exceeded limit.
fn protected_call(lua: &Lua, usage: &Rc<Usage>) -> mlua::Result<Function> {
    let usage = Rc::clone(usage);
    lua.create_function(move |lua, (function, arguments): (Value, MultiValue)| {
        caught(lua, &usage, call(&function, arguments), None)
    })
}

fn protected_call_with_handler(lua: &Lua, usage: &Rc<Usage>) -> mlua::Result<Function> {
    let usage = Rc::clone(usage);
    lua.create_function(move |lua, (function, handler): (Value, Function)| {
        caught(lua, &usage, call(&function, MultiValue::new()), Some(&handler))
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
    usage: &Usage,
    outcome: mlua::Result<MultiValue>,
    handler: Option<&Function>,
) -> mlua::Result<MultiValue> {
    if let Some(limit) = usage.exceeded() {
        return Err(usage.exceed(limit));
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
fn guard_coroutines(lua: &Lua, coroutine: &Table, usage: &Rc<Usage>) -> mlua::Result<()> {
    let resume: Function = coroutine.get("resume")?;
    let usage = Rc::clone(usage);
    let guarded = lua.create_function(move |_, arguments: MultiValue| {
        let values: MultiValue = resume.call(arguments)?;
        match usage.exceeded() {
            Some(limit) => Err(usage.exceed(limit)),
            None => Ok(values),
        }
    })?;
    coroutine.set("resume", guarded)
}

/// Adds a check before each search, in the table that the metatable of strings uses.
fn guard_searches(lua: &Lua, string: &Table, usage: &Rc<Usage>) -> mlua::Result<()> {
    for name in SEARCHES {
        let search: Function = string.get(*name)?;
        let usage = Rc::clone(usage);
        let guarded = lua.create_function(move |_, arguments: Variadic<Value>| {
            if let [Value::String(text), Value::String(pattern), ..] = arguments.as_slice()
                && steps(&text.as_bytes(), &pattern.as_bytes()) > MAX_SEARCH
            {
                return Err(usage.exceed(Limit::Size));
            }
            search.call::<MultiValue>(arguments)
        })?;
        string.set(*name, guarded)?;
    }
    Ok(())
}

/// An upper bound of the steps of a search: each repetition may try every end for every start.
fn steps(text: &[u8], pattern: &[u8]) -> f64 {
    let n_repetitions = pattern.iter().filter(|byte| matches!(byte, b'*' | b'+' | b'-')).count();
    let starts = usize::from(pattern.first() != Some(&b'^'));
    let exponent = i32::try_from(n_repetitions + starts).unwrap_or(i32::MAX);
    let length = u32::try_from(text.len()).map_or(f64::MAX, f64::from);
    length.max(1.0).powi(exponent)
}

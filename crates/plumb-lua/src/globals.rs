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

/// Most steps of a function that is written in C, where the time limit cannot stop it.
const MAX_STEPS: f64 = 1e9;

/// Most entries of a list that is sorted: in the worst case the steps are the square.
const MAX_SORTED: usize = 20_000;

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
        let table: Table = original.get("table")?;
        guard_lists(lua, &table, usage)?;
        tables.raw_set("table", table)?;
        if libraries == Libraries::Open {
            let string: Table = original.get("string")?;
            guard_searches(lua, &string, usage)?;
            guard_repetition(lua, &string, usage)?;
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
                && steps(&text.as_bytes(), &pattern.as_bytes(), is_plain(&arguments)) > MAX_STEPS
            {
                return Err(usage.exceed(Limit::Size));
            }
            search.call::<MultiValue>(arguments)
        })?;
        string.set(*name, guarded)?;
    }
    Ok(())
}

/// The fourth argument of `find` turns patterns off.
fn is_plain(arguments: &[Value]) -> bool {
    arguments.get(3).is_some_and(|plain| !matches!(plain, Value::Nil | Value::Boolean(false)))
}

/// An upper bound of the steps of a search. Each repetition may try every end for every start, and each optional
/// character both ways. A text without such characters is compared at every start.
fn steps(text: &[u8], pattern: &[u8], is_plain: bool) -> f64 {
    let count = |bytes: &[u8]| pattern.iter().filter(|byte| bytes.contains(byte)).count();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_or(f64::MAX, f64::from).max(1.0);
    let exponent = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    if is_plain || count(b"^$*+?.([%-") == 0 {
        return length(text) * length(pattern);
    }
    // `%b` and `%1` look at many characters too.
    let n_jumps =
        pattern.windows(2).filter(|pair| pair[0] == b'%' && matches!(pair[1], b'b' | b'0'..=b'9')).count();
    let starts = usize::from(pattern.first() != Some(&b'^'));
    let repetitions = length(text).powi(exponent(count(b"*+-") + n_jumps + starts));
    repetitions * 2_f64.powi(exponent(count(b"?")))
}

/// `string.rep` of nothing takes no memory, but time.
fn guard_repetition(lua: &Lua, string: &Table, usage: &Rc<Usage>) -> mlua::Result<()> {
    let repeat: Function = string.get("rep")?;
    let usage = Rc::clone(usage);
    let guarded = lua.create_function(move |_, arguments: Variadic<Value>| {
        if let [Value::String(text), times, ..] = arguments.as_slice()
            && text.as_bytes().is_empty()
            && number(times).is_some_and(|times| times > MAX_STEPS / 100.0)
        {
            return Err(usage.exceed(Limit::Size));
        }
        repeat.call::<MultiValue>(arguments)
    })?;
    string.set("rep", guarded)
}

/// `table.insert` at a place far from the list moves every place between, and `table.sort` may compare every pair.
fn guard_lists(lua: &Lua, table: &Table, usage: &Rc<Usage>) -> mlua::Result<()> {
    let insert: Function = table.get("insert")?;
    let guard = Rc::clone(usage);
    let guarded = lua.create_function(move |_, arguments: Variadic<Value>| {
        if let [Value::Table(list), place, _, ..] = arguments.as_slice()
            && let Some(place) = number(place)
        {
            let last = u32::try_from(list.raw_len()).map_or(f64::MAX, f64::from) + 1.0;
            if last - place > MAX_STEPS / 100.0 {
                return Err(guard.exceed(Limit::Size));
            }
        }
        insert.call::<MultiValue>(arguments)
    })?;
    table.set("insert", guarded)?;
    let sort: Function = table.get("sort")?;
    let guard = Rc::clone(usage);
    let guarded = lua.create_function(move |_, arguments: Variadic<Value>| {
        if let [Value::Table(list), ..] = arguments.as_slice()
            && list.raw_len() > MAX_SORTED
        {
            return Err(guard.exceed(Limit::Size));
        }
        sort.call::<MultiValue>(arguments)
    })?;
    table.set("sort", guarded)
}

/// The number that Lua reads an argument as.
#[expect(clippy::cast_precision_loss, reason = "only the size matters")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        Value::String(text) => text.to_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}

//! One Lua state, its limits, and the scripts compiled in it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table};
use serde_json::Value;

use crate::convert;
use crate::error::{Error, Limit};
use crate::globals::Globals;
use crate::limits::{CHECK_EVERY, Libraries, Limits, Usage};

/// Most compiled scripts in memory, more than any settings have. Beyond it, all are dropped.
const MAX_COMPILED: usize = 1024;

/// Garbage of earlier runs is collected when the state has more bytes than this.
const COLLECT_ABOVE: usize = 8 << 20;

/// A Lua state that runs scripts under limits. It stays on its thread.
pub struct Sandbox {
    lua: Lua,
    limits: Limits,
    usage: Rc<Usage>,
    globals: Globals,
    compiled: RefCell<HashMap<String, Function>>,
}

impl Sandbox {
    /// A new state with these libraries and limits.
    pub fn new(libraries: Libraries, limits: Limits) -> Result<Self, Error> {
        let setup = |error: mlua::Error| Error::Setup { message: error.to_string() };
        let loaded = match libraries {
            Libraries::Plain => StdLib::TABLE | StdLib::OS,
            // Coroutines are part of the base library in Lua 5.1.
            Libraries::Open => StdLib::TABLE | StdLib::OS | StdLib::STRING | StdLib::MATH,
        };
        let lua = Lua::new_with(loaded, LuaOptions::new().catch_rust_panics(false)).map_err(setup)?;
        lua.set_memory_limit(limits.memory).map_err(setup)?;
        let usage = Rc::new(Usage::new(limits));
        let checked = Rc::clone(&usage);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(CHECK_EVERY), move |_, _| {
            checked.check()
        })
        .map_err(setup)?;
        let globals = Globals::new(&lua, libraries, &usage).map_err(setup)?;
        Ok(Self { lua, limits, usage, globals, compiled: RefCell::default() })
    }

    /// Runs a script on an object and passes its result to `read`, under the same limits.
    pub(crate) fn run<T>(
        &self,
        source: &str,
        object: &Value,
        params: &BTreeMap<String, String>,
        read: impl FnOnce(mlua::Value, &Limits) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.usage.reset();
        if self.lua.used_memory() > COLLECT_ABOVE {
            let _ = self.lua.gc_collect();
        }
        let script = self.compile(source)?;
        let run = || -> mlua::Result<mlua::Value> {
            let globals = self.globals.fresh(convert::to_lua(&self.lua, object)?, self.params(params)?)?;
            script.set_environment(globals)?;
            script.call(())
        };
        let answer = run().map_err(|error| self.explain(&error));
        // The script may have caught the error.
        if let Some(limit) = self.usage.exceeded() {
            return Err(Error::Limit { limit });
        }
        read(answer?, &self.limits)
    }

    /// The memory of the state, garbage included, in bytes.
    pub fn used_memory(&self) -> usize {
        self.lua.used_memory()
    }

    fn params(&self, params: &BTreeMap<String, String>) -> mlua::Result<Table> {
        self.lua.create_table_from(params.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    fn compile(&self, source: &str) -> Result<Function, Error> {
        let mut compiled = self.compiled.borrow_mut();
        if let Some(function) = compiled.get(source) {
            return Ok(function.clone());
        }
        if compiled.len() >= MAX_COMPILED {
            compiled.clear();
        }
        // Text only: Lua 5.1 does not verify bytecode, which could access any memory.
        let function = self
            .lua
            .load(source)
            .set_name("=script")
            .set_mode(ChunkMode::Text)
            .into_function()
            .map_err(|error| Error::Compile { message: error.to_string() })?;
        compiled.insert(source.to_owned(), function.clone());
        Ok(function)
    }

    fn explain(&self, error: &mlua::Error) -> Error {
        if let Some(limit) = self.usage.exceeded() {
            return Error::Limit { limit };
        }
        match root(error) {
            mlua::Error::MemoryError(_) => Error::Limit { limit: Limit::Memory },
            other => Error::Run { message: first_line(&other.to_string()) },
        }
    }
}

fn root(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause, .. } => root(cause),
        other => other,
    }
}

/// The other lines are a trace of the interpreter, which does not help the author of the script.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("runtime error: ").to_owned()
}

//! One Lua state, its limits, and the scripts compiled in it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, VmState};
use serde_json::Value;

use crate::convert;
use crate::error::{Error, Limit};
use crate::globals::Globals;

/// What one run may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take, by the clock. Argo CD gives one second.
    pub time: Duration,
    /// How many instructions of the Lua machine it may run.
    pub instructions: u64,
    /// How much memory the whole state may take, in bytes.
    pub memory: usize,
    /// How many values its answer may have.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(1), instructions: 50_000_000, memory: 64 << 20, answer: 200_000 }
    }
}

/// Which libraries a script sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Libraries {
    /// Base, `table`, and the clock through `require("os")`.
    Plain,
    /// Also `string`, `math`, `coroutine` and the clock as `os`.
    Open,
}

/// How often the limits are looked at, in instructions.
const STRIDE: u32 = 1000;

/// More scripts than this are never in one setting; past it the compiled ones are dropped.
const MAX_COMPILED: usize = 1024;

/// Garbage of earlier runs is collected when the state has grown past this.
const COLLECT_ABOVE: usize = 8 << 20;

/// A Lua state that runs scripts under limits. It stays on its thread.
pub struct Sandbox {
    lua: Lua,
    limits: Limits,
    spent: Rc<Spent>,
    globals: Globals,
    compiled: RefCell<HashMap<String, Function>>,
}

/// What the current run has spent.
pub(crate) struct Spent {
    instructions: Cell<u64>,
    allowed: Cell<u64>,
    deadline: Cell<Instant>,
    passed: Cell<Option<Limit>>,
}

impl Spent {
    /// The limit that was passed, for good: nothing that the script does brings it back.
    pub(crate) fn passed(&self) -> Option<Limit> {
        self.passed.get()
    }

    pub(crate) fn pass(&self, limit: Limit) -> mlua::Error {
        self.passed.set(Some(limit));
        mlua::Error::runtime(format!("the script passed its limit of {limit}"))
    }

    fn check(&self) -> mlua::Result<VmState> {
        self.instructions.set(self.instructions.get() + u64::from(STRIDE));
        if let Some(limit) = self.passed.get() {
            return Err(self.pass(limit));
        }
        if self.instructions.get() > self.allowed.get() {
            return Err(self.pass(Limit::Instructions));
        }
        if Instant::now() > self.deadline.get() {
            return Err(self.pass(Limit::Time));
        }
        Ok(VmState::Continue)
    }
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
        let spent = Rc::new(Spent {
            instructions: Cell::new(0),
            allowed: Cell::new(limits.instructions),
            deadline: Cell::new(Instant::now() + limits.time),
            passed: Cell::new(None),
        });
        let watched = Rc::clone(&spent);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(STRIDE), move |_, _| watched.check())
            .map_err(setup)?;
        let globals = Globals::new(&lua, libraries, &spent).map_err(setup)?;
        Ok(Self { lua, limits, spent, globals, compiled: RefCell::default() })
    }

    /// Runs a script on an object and gives what it returned to `read`, still under the limits.
    pub(crate) fn run<T>(
        &self,
        source: &str,
        object: &Value,
        params: &BTreeMap<String, String>,
        read: impl FnOnce(mlua::Value, &Limits) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.spent.instructions.set(0);
        self.spent.passed.set(None);
        self.spent.deadline.set(Instant::now() + self.limits.time);
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
        // The script may have caught the error that told it so.
        if let Some(limit) = self.spent.passed() {
            return Err(Error::Limit { limit });
        }
        read(answer?, &self.limits)
    }

    /// What the state holds, garbage included, in bytes.
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
        // Text only: Lua 5.1 trusts compiled code, which could then reach anything.
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
        if let Some(limit) = self.spent.passed() {
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

/// The rest is a trace of the interpreter, which says nothing to the script's author.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("runtime error: ").to_owned()
}

//! plumb-render with real files and the real programs.

#[cfg(test)]
mod simple;
#[cfg(test)]
mod workbench;

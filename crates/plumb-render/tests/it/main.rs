//! plumb-render with real files and the real programs.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod charts;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_servers;
#[cfg(test)]
mod origins;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod simple;
#[cfg(test)]
mod workbench;

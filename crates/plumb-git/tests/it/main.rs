//! plumb-git against the real git program, in temporary directories.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod fetching;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod names;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod signatures;
#[cfg(test)]
mod working_copy;

mod asked_for;
mod proposals;
mod scene;

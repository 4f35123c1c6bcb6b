mod anchors;
mod cases;
mod forms;
mod generated;
mod operations;
mod refusals;
mod styled;

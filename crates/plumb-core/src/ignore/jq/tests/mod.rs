mod hostile;
mod like_jaq;

mod diagnosis;
mod formats;
mod scene;

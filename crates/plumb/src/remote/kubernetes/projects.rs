//! Projects.

use http::Method;
use plumb_core::object::json_patch;
use plumb_crd::AppProject;
use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::applications::typed;
use super::asked::Asked;
use super::state::Door;
use crate::remote::query;

impl Door {
    pub(super) async fn project(&self, asked: &Asked) -> Result<Answer, Failure> {
        if asked.is_watch() {
            return Err(Failure::new(404, "the server streams no projects: leave out --watch"));
        }
        let name = asked.name.as_str();
        match (&asked.method, name) {
            (&Method::GET, "") => {
                let found = self.api().get_raw("/api/v1/projects").await?;
                let items = found["items"].as_array().cloned().unwrap_or_default();
                let items: Vec<Value> =
                    items.into_iter().map(|project| typed(project, AppProject::KIND)).collect();
                Ok(Answer::Json(json!({
                    "apiVersion": AppProject::API_VERSION, "kind": "AppProjectList", "metadata": {},
                    "items": items,
                })))
            }
            (&Method::GET, name) => self.read_project(name).await.map(Answer::Json),
            (&Method::POST, _) => {
                let request = json!({"project": asked.body});
                let written = self.api().patient(Method::POST, "/api/v1/projects", Some(&request)).await?;
                Ok(Answer::Json(typed(written, AppProject::KIND)))
            }
            (&Method::PATCH, name) => {
                // The API replaces the whole spec, if the project has not changed since it was read.
                let mut project = self.read_project(name).await?;
                json_patch(&mut project, &asked.body).map_err(|why| Failure::new(422, why))?;
                let path = format!("/api/v1/projects/{}", query::part(name));
                let request = json!({"project": project});
                let written = self.api().patient(Method::PUT, &path, Some(&request)).await?;
                Ok(Answer::Json(typed(written, AppProject::KIND)))
            }
            (&Method::DELETE, name) => {
                let path = format!("/api/v1/projects/{}", query::part(name));
                self.api().patient(Method::DELETE, &path, None).await?;
                Ok(Answer::Json(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})))
            }
            _ => Err(Failure::new(405, "the server does not offer this")),
        }
    }

    async fn read_project(&self, name: &str) -> Result<Value, Failure> {
        let found = self.api().get_raw(&format!("/api/v1/projects/{}", query::part(name))).await;
        let found = found.map_err(|why| Failure::from(why).hidden_is_missing(&format!("project {name}")))?;
        Ok(typed(found, AppProject::KIND))
    }
}

//! The generators of an `ApplicationSet`'s parameters.

use std::collections::BTreeMap;

use crate::wire::{Raw, RawMap, wire};

wire! {
    /// One generator: exactly one of its kinds is set, beside `selector`.
    pub struct ApplicationSetGenerator {
        /// Fixed parameters.
        "list" list: Option<ListGenerator>,
        /// One set of parameters per registered cluster.
        "clusters" clusters: Option<ClusterGenerator>,
        /// Directories or files of a repository.
        "git" git: Option<GitGenerator>,
        /// Repositories of a provider.
        "scmProvider" scm_provider: Option<Box<ScmProviderGenerator>>,
        /// Clusters that another object names.
        "clusterDecisionResource" cluster_decision_resource: Option<ClusterDecisionResourceGenerator>,
        /// Open pull requests.
        "pullRequest" pull_request: Option<Box<PullRequestGenerator>>,
        /// Each combination of two generators.
        "matrix" matrix: Option<MatrixGenerator>,
        /// Sets of parameters that override each other.
        "merge" merge: Option<MergeGenerator>,
        /// Keeps only matching sets of parameters.
        "selector" selector: Option<LabelSelector> where {"x-kubernetes-map-type": "atomic"},
        /// Parameters from a service.
        "plugin" plugin: Option<PluginGenerator>,
    }

    /// A label selector.
    pub struct LabelSelector {
        /// Labels that must have these values.
        "matchLabels" match_labels: BTreeMap<String, String>,
        /// Further conditions.
        "matchExpressions" match_expressions: Vec<LabelSelectorRequirement>
            where {"x-kubernetes-list-type": "atomic"},
    }

    /// One condition of a label selector.
    pub struct LabelSelectorRequirement {
        /// The label.
        "key" key: String = required,
        /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
        "operator" operator: String = required,
        /// Its values.
        "values" values: Vec<String> where {"x-kubernetes-list-type": "atomic"},
    }

    /// `list`.
    pub struct ListGenerator {
        /// One set of parameters each.
        "elements" elements: Vec<Raw>,
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
        /// More elements, as a YAML text.
        "elementsYaml" elements_yaml: String,
    }

    /// `clusters`.
    pub struct ClusterGenerator {
        /// Which cluster Secrets.
        "selector" selector: LabelSelector where {"x-kubernetes-map-type": "atomic"},
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
        /// More parameters.
        "values" values: BTreeMap<String, String>,
        /// Give all clusters as one list.
        "flatList" flat_list: bool,
    }

    /// `git`.
    pub struct GitGenerator {
        /// Git URL.
        "repoURL" repo_url: String = required,
        /// One set of parameters per directory.
        "directories" directories: Vec<GitPath>,
        /// One set of parameters per file.
        "files" files: Vec<GitPath>,
        /// Branch, tag or hash.
        "revision" revision: String = required,
        /// How often to look.
        "requeueAfterSeconds" requeue_after_seconds: Option<i64>,
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
        /// Prefix of the path parameters.
        "pathParamPrefix" path_param_prefix: String,
        /// More parameters.
        "values" values: BTreeMap<String, String>,
    }

    /// A path glob of `git`.
    pub struct GitPath {
        /// The glob.
        "path" path: String = required,
        /// Exclude what matches.
        "exclude" exclude: bool,
    }

    /// `matrix`.
    pub struct MatrixGenerator {
        /// Two generators, preserved unchanged.
        "generators" generators: Vec<RawMap> = required,
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
    }

    /// `merge`.
    pub struct MergeGenerator {
        /// Two or more generators, preserved unchanged.
        "generators" generators: Vec<RawMap> = required,
        /// Parameters that identify sets to merge.
        "mergeKeys" merge_keys: Vec<String> = required,
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
    }

    /// `clusterDecisionResource`.
    pub struct ClusterDecisionResourceGenerator {
        /// `ConfigMap` that names the kind to read.
        "configMapRef" config_map_ref: String = required,
        /// Name of the object.
        "name" name: String,
        /// How often to look.
        "requeueAfterSeconds" requeue_after_seconds: Option<i64>,
        /// Which objects.
        "labelSelector" label_selector: LabelSelector where {"x-kubernetes-map-type": "atomic"},
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
        /// More parameters.
        "values" values: BTreeMap<String, String>,
    }

    /// `plugin`.
    pub struct PluginGenerator {
        /// `ConfigMap` with the service's address.
        "configMapRef" config_map_ref: PluginConfigMapRef = required,
        /// What is sent.
        "input" input: PluginInput,
        /// How often to ask.
        "requeueAfterSeconds" requeue_after_seconds: Option<i64>,
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
        /// More parameters.
        "values" values: BTreeMap<String, String>,
    }

    /// `ConfigMap` with a plugin's address.
    pub struct PluginConfigMapRef {
        /// Its name.
        "name" name: String = required,
    }

    /// What is sent to a plugin.
    pub struct PluginInput {
        /// Any values.
        "parameters" parameters: BTreeMap<String, Raw>,
    }

    /// One key of a Secret.
    pub struct SecretRef {
        /// Name of the Secret.
        "secretName" secret_name: String = required,
        /// Its key.
        "key" key: String = required,
    }

    /// One key of a `ConfigMap`.
    pub struct ConfigMapKeyRef {
        /// Name of the `ConfigMap`.
        "configMapName" config_map_name: String = required,
        /// Its key.
        "key" key: String = required,
    }

    /// User and password.
    pub struct BasicAuth {
        /// The user.
        "username" username: String = required,
        /// Where the password is.
        "passwordRef" password_ref: SecretRef = required,
    }

    /// A token.
    pub struct BearerToken {
        /// Where the token is.
        "tokenRef" token_ref: SecretRef = required,
    }

    /// `scmProvider`.
    pub struct ScmProviderGenerator {
        /// GitHub.
        "github" github: Option<GithubRepositories>,
        /// GitLab.
        "gitlab" gitlab: Option<GitlabRepositories>,
        /// Bitbucket Cloud.
        "bitbucket" bitbucket: Option<BitbucketRepositories>,
        /// Bitbucket Server.
        "bitbucketServer" bitbucket_server: Option<BitbucketServerRepositories>,
        /// Gitea.
        "gitea" gitea: Option<GiteaRepositories>,
        /// Azure DevOps.
        "azureDevOps" azure_dev_ops: Option<AzureDevOpsRepositories>,
        /// AWS `CodeCommit`.
        "awsCodeCommit" aws_code_commit: Option<AwsCodeCommit>,
        /// Keeps only matching repositories.
        "filters" filters: Vec<ScmProviderFilter>,
        /// `https` or `ssh`.
        "cloneProtocol" clone_protocol: String,
        /// How often to look.
        "requeueAfterSeconds" requeue_after_seconds: Option<i64>,
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
        /// More parameters.
        "values" values: BTreeMap<String, String>,
    }

    /// Repositories of a GitHub organisation.
    pub struct GithubRepositories {
        /// The organisation.
        "organization" organization: String = required,
        /// Address of the API.
        "api" api: String,
        /// Where the token is.
        "tokenRef" token_ref: Option<SecretRef>,
        /// Secret with a GitHub App.
        "appSecretName" app_secret_name: String,
        /// All branches, not only the main one.
        "allBranches" all_branches: bool,
        /// Leave out archived repositories.
        "excludeArchivedRepos" exclude_archived_repos: bool,
    }

    /// Repositories of a GitLab group.
    pub struct GitlabRepositories {
        /// The group.
        "group" group: String = required,
        /// Groups inside the group too.
        "includeSubgroups" include_subgroups: bool,
        /// Address of the API.
        "api" api: String,
        /// Where the token is.
        "tokenRef" token_ref: Option<SecretRef>,
        /// All branches, not only the main one.
        "allBranches" all_branches: bool,
        /// Do not verify the certificate.
        "insecure" insecure: bool,
        /// Projects that are shared with the group; true if not set.
        "includeSharedProjects" include_shared_projects: Option<bool>,
        /// Archived projects too.
        "includeArchivedRepos" include_archived_repos: Option<bool>,
        /// Only projects with this topic.
        "topic" topic: String,
        /// Where the authority's certificate is.
        "caRef" ca_ref: Option<ConfigMapKeyRef>,
    }

    /// Repositories of a Bitbucket Cloud workspace.
    pub struct BitbucketRepositories {
        /// The workspace.
        "owner" owner: String = required,
        /// The user.
        "user" user: String = required,
        /// Where the password is.
        "appPasswordRef" app_password_ref: Option<SecretRef> = required,
        /// All branches, not only the main one.
        "allBranches" all_branches: bool,
    }

    /// Repositories of a Bitbucket Server project.
    pub struct BitbucketServerRepositories {
        /// The project.
        "project" project: String = required,
        /// Address of the API.
        "api" api: String = required,
        /// User and password.
        "basicAuth" basic_auth: Option<BasicAuth>,
        /// A token.
        "bearerToken" bearer_token: Option<BearerToken>,
        /// All branches, not only the main one.
        "allBranches" all_branches: bool,
        /// Do not verify the certificate.
        "insecure" insecure: bool,
        /// Where the authority's certificate is.
        "caRef" ca_ref: Option<ConfigMapKeyRef>,
    }

    /// Repositories of a Gitea owner.
    pub struct GiteaRepositories {
        /// The owner.
        "owner" owner: String = required,
        /// Address of the API.
        "api" api: String = required,
        /// Where the token is.
        "tokenRef" token_ref: Option<SecretRef>,
        /// All branches, not only the main one.
        "allBranches" all_branches: bool,
        /// Do not verify the certificate.
        "insecure" insecure: bool,
        /// Leave out archived repositories.
        "excludeArchivedRepos" exclude_archived_repos: bool,
    }

    /// Repositories of an Azure DevOps project.
    pub struct AzureDevOpsRepositories {
        /// The organisation.
        "organization" organization: String = required,
        /// Address of the API.
        "api" api: String,
        /// The project.
        "teamProject" team_project: String = required,
        /// Where the token is.
        "accessTokenRef" access_token_ref: Option<SecretRef> = required,
        /// All branches, not only the main one.
        "allBranches" all_branches: bool,
    }

    /// Repositories of AWS `CodeCommit`.
    pub struct AwsCodeCommit {
        /// Only repositories with these tags.
        "tagFilters" tag_filters: Vec<TagFilter>,
        /// Role to act as.
        "role" role: String,
        /// Region.
        "region" region: String,
        /// All branches, not only the main one.
        "allBranches" all_branches: bool,
    }

    /// A tag of a repository.
    pub struct TagFilter {
        /// Its key.
        "key" key: String = required,
        /// Its value; empty matches any.
        "value" value: String,
    }

    /// Keeps only matching repositories.
    pub struct ScmProviderFilter {
        /// Name of the repository, as a regular expression.
        "repositoryMatch" repository_match: Option<String>,
        /// Paths that must exist.
        "pathsExist" paths_exist: Vec<String>,
        /// Paths that must not exist.
        "pathsDoNotExist" paths_do_not_exist: Vec<String>,
        /// A label of the repository, as a regular expression.
        "labelMatch" label_match: Option<String>,
        /// Name of the branch, as a regular expression.
        "branchMatch" branch_match: Option<String>,
    }

    /// `pullRequest`.
    pub struct PullRequestGenerator {
        /// GitHub.
        "github" github: Option<GithubPullRequests>,
        /// GitLab.
        "gitlab" gitlab: Option<GitlabPullRequests>,
        /// Gitea.
        "gitea" gitea: Option<GiteaPullRequests>,
        /// Bitbucket Server.
        "bitbucketServer" bitbucket_server: Option<BitbucketServerPullRequests>,
        /// Bitbucket Cloud.
        "bitbucket" bitbucket: Option<BitbucketPullRequests>,
        /// Azure DevOps.
        "azuredevops" azuredevops: Option<AzureDevOpsPullRequests>,
        /// Keeps only matching pull requests.
        "filters" filters: Vec<PullRequestFilter>,
        /// How often to look.
        "requeueAfterSeconds" requeue_after_seconds: Option<i64>,
        /// Overrides of the main template.
        "template" template: Option<RawMap>,
        /// A repository that does not exist counts as one without pull requests.
        "continueOnRepoNotFoundError" continue_on_repo_not_found_error: bool,
        /// More parameters.
        "values" values: BTreeMap<String, String>,
    }

    /// Pull requests of a GitHub repository.
    pub struct GithubPullRequests {
        /// The owner.
        "owner" owner: String = required,
        /// The repository.
        "repo" repo: String = required,
        /// Address of the API.
        "api" api: String,
        /// Where the token is.
        "tokenRef" token_ref: Option<SecretRef>,
        /// Secret with a GitHub App.
        "appSecretName" app_secret_name: String,
        /// Labels they must have.
        "labels" labels: Vec<String>,
    }

    /// Merge requests of a GitLab project.
    pub struct GitlabPullRequests {
        /// The project.
        "project" project: String = required,
        /// Address of the API.
        "api" api: String,
        /// Where the token is.
        "tokenRef" token_ref: Option<SecretRef>,
        /// Labels they must have.
        "labels" labels: Vec<String>,
        /// Such as `opened`.
        "pullRequestState" pull_request_state: String,
        /// Do not verify the certificate.
        "insecure" insecure: bool,
        /// Where the authority's certificate is.
        "caRef" ca_ref: Option<ConfigMapKeyRef>,
    }

    /// Pull requests of a Gitea repository.
    pub struct GiteaPullRequests {
        /// The owner.
        "owner" owner: String = required,
        /// The repository.
        "repo" repo: String = required,
        /// Address of the API.
        "api" api: String = required,
        /// Where the token is.
        "tokenRef" token_ref: Option<SecretRef>,
        /// Do not verify the certificate.
        "insecure" insecure: bool,
        /// Labels they must have.
        "labels" labels: Vec<String>,
    }

    /// Pull requests of a Bitbucket Server repository.
    pub struct BitbucketServerPullRequests {
        /// The project.
        "project" project: String = required,
        /// The repository.
        "repo" repo: String = required,
        /// Address of the API.
        "api" api: String = required,
        /// User and password.
        "basicAuth" basic_auth: Option<BasicAuth>,
        /// A token.
        "bearerToken" bearer_token: Option<BearerToken>,
        /// Do not verify the certificate.
        "insecure" insecure: bool,
        /// Where the authority's certificate is.
        "caRef" ca_ref: Option<ConfigMapKeyRef>,
    }

    /// Pull requests of a Bitbucket Cloud repository.
    pub struct BitbucketPullRequests {
        /// The workspace.
        "owner" owner: String = required,
        /// The repository.
        "repo" repo: String = required,
        /// Address of the API.
        "api" api: String,
        /// User and password.
        "basicAuth" basic_auth: Option<BasicAuth>,
        /// A token.
        "bearerToken" bearer_token: Option<BearerToken>,
    }

    /// Pull requests of an Azure DevOps repository.
    pub struct AzureDevOpsPullRequests {
        /// The organisation.
        "organization" organization: String = required,
        /// The project.
        "project" project: String = required,
        /// The repository.
        "repo" repo: String = required,
        /// Address of the API.
        "api" api: String,
        /// Where the token is.
        "tokenRef" token_ref: Option<SecretRef>,
        /// Labels they must have.
        "labels" labels: Vec<String>,
    }

    /// Keeps only matching pull requests.
    pub struct PullRequestFilter {
        /// Name of the branch, as a regular expression.
        "branchMatch" branch_match: Option<String>,
        /// Name of the target branch, as a regular expression.
        "targetBranchMatch" target_branch_match: Option<String>,
        /// Title, as a regular expression.
        "titleMatch" title_match: Option<String>,
    }
}

impl LabelSelector {
    /// True if these labels match every condition. An unknown operator matches nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |key: &String, value: &String| labels.get(key) == Some(value);
        self.match_labels.iter().all(|(key, value)| has(key, value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }
}

impl LabelSelectorRequirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let is_listed = || value.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => is_listed(),
            "NotIn" => !is_listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

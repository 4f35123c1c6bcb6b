//! `argoproj.io/v1alpha1` `ApplicationSet`.
//!
//! Generators nest, and a nested generator may have a template where its schema has a number. So the content of
//! `matrix` and `merge` is stored as raw JSON and read when it is used. The same applies to the templates of single
//! generators, which override only parts of the main template.

mod generator;
mod object;

pub use generator::{
    ApplicationSetGenerator, AwsCodeCommit, AzureDevOpsPullRequests, AzureDevOpsRepositories, BasicAuth,
    BearerToken, BitbucketPullRequests, BitbucketRepositories, BitbucketServerPullRequests,
    BitbucketServerRepositories, ClusterDecisionResourceGenerator, ClusterGenerator, ConfigMapKeyRef,
    GitGenerator, GitPath, GiteaPullRequests, GiteaRepositories, GithubPullRequests, GithubRepositories,
    GitlabPullRequests, GitlabRepositories, LabelSelector, LabelSelectorRequirement, ListGenerator,
    MatrixGenerator, MergeGenerator, PluginConfigMapRef, PluginGenerator, PluginInput, PullRequestFilter,
    PullRequestGenerator, ScmProviderFilter, ScmProviderGenerator, SecretRef, TagFilter,
};

pub use object::{
    ApplicationMatchExpression, ApplicationSet, ApplicationSetApplicationStatus, ApplicationSetCondition,
    ApplicationSetSpec, ApplicationSetStatus, ApplicationSetStrategy, ApplicationSetSyncPolicy,
    ApplicationSetTemplate, IgnoreApplicationDifferences, PreservedFields, RolloutStep, RolloutStrategy,
    TemplateMetadata,
};

//! What secrets look like: one row each.
//!
//! The forms are those that providers describe, or that their consoles have given out; `source` says which. None of them was tried
//! against a provider, and a form that changes is missed until its row does.

use super::check::Alphabet;
use Alphabet::{Alnum, Base64, Dotted, Hex, Upper, UrlSafe, Word};

/// One row: what a kind of secret begins with, and what follows.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    /// Its name, as findings and masks say it.
    pub kind: &'static str,
    /// What it begins with, or what stands before it. At least three bytes of ASCII that JSON does not escape.
    pub anchor: &'static str,
    /// What makes it a secret.
    pub(crate) shape: Shape,
    /// Where its form is known from.
    pub source: &'static str,
}

/// What follows an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// So many characters of an alphabet, which look random. The anchor is part of the token.
    Token { of: Alphabet, min: usize, max: usize },
    /// A private key in PEM, from its first line to its last; or what is left of it.
    PemBegin,
    /// The end of one whose beginning was cut off.
    PemEnd,
    /// Three parts of base64, the first two of them JSON.
    Jwt,
    /// `user:password@` of an address.
    UrlPassword,
    /// `=` or `:` and a value.
    Value { strict: bool },
}

impl Shape {
    /// What a person's own pattern stands for.
    pub(crate) const OWN: Self = Self::Token { of: Dotted, min: 8, max: 4096 };
}

const fn token(
    kind: &'static str,
    anchor: &'static str,
    of: Alphabet,
    (min, max): (usize, usize),
    source: &'static str,
) -> Detector {
    Detector { kind, anchor, shape: Shape::Token { of, min, max }, source }
}

const fn shaped(kind: &'static str, anchor: &'static str, shape: Shape, source: &'static str) -> Detector {
    Detector { kind, anchor, shape, source }
}

const fn named(kind: &'static str, anchor: &'static str, strict: bool) -> Detector {
    Detector {
        kind,
        anchor,
        shape: Shape::Value { strict },
        source: "names in .env files and configurations",
    }
}

const AWS: &str = "AWS IAM, unique identifiers";
const GITHUB: &str = "GitHub, token formats";
const GITLAB: &str = "GitLab, token prefixes";
const SLACK: &str = "Slack, token types";
const OPENAI: &str = "OpenAI console";
const ANTHROPIC: &str = "Anthropic console";
const STRIPE: &str = "Stripe, API keys";
const SHOPIFY: &str = "Shopify, access tokens";
const VAULT: &str = "HashiCorp Vault, tokens";
const OCEAN: &str = "DigitalOcean, tokens";
const PEM: &str = "RFC 7468, RFC 4880";

/// All rows.
pub static DETECTORS: &[Detector] = &[
    // Clouds.
    token("aws-access-key", "AKIA", Upper, (16, 16), AWS),
    token("aws-access-key", "ASIA", Upper, (16, 16), AWS),
    token("google-api-key", "AIza", UrlSafe, (35, 35), "Google Cloud, API keys"),
    token("google-oauth-token", "ya29.", UrlSafe, (30, 2048), "Google, OAuth 2.0"),
    token("google-client-secret", "GOCSPX-", UrlSafe, (28, 28), "Google, OAuth 2.0"),
    token("azure-storage-key", "AccountKey=", Base64, (80, 100), "Azure Storage, connection strings"),
    token("azure-shared-key", "SharedAccessKey=", Base64, (40, 60), "Azure Event Hubs, connection strings"),
    token("digitalocean-token", "dop_v1_", Hex, (64, 64), OCEAN),
    token("digitalocean-token", "doo_v1_", Hex, (64, 64), OCEAN),
    token("alibaba-access-key", "LTAI", Alnum, (16, 26), "Alibaba Cloud, AccessKey"),
    token("heroku-token", "HRKU-", UrlSafe, (32, 80), "Heroku, OAuth tokens"),
    token("databricks-token", "dapi", Hex, (32, 36), "Databricks, personal access tokens"),
    token("flyio-token", "FlyV1 ", Base64, (60, 4096), "Fly.io, access tokens"),
    token("planetscale-token", "pscale_", Dotted, (32, 80), "PlanetScale, service tokens"),
    token("supabase-token", "sbp_", Hex, (40, 40), "Supabase, access tokens"),
    token("supabase-key", "sb_secret_", UrlSafe, (20, 60), "Supabase, API keys"),
    token("pulumi-token", "pul-", Hex, (40, 40), "Pulumi, access tokens"),
    token("doppler-token", "dp.pt.", Alnum, (40, 50), "Doppler, tokens"),
    token("doppler-token", "dp.st.", Dotted, (40, 80), "Doppler, tokens"),
    token("vault-token", "hvs.", UrlSafe, (24, 200), VAULT),
    token("vault-token", "hvb.", UrlSafe, (24, 300), VAULT),
    token("tailscale-key", "tskey-", UrlSafe, (20, 100), "Tailscale, keys"),
    token("onepassword-token", "ops_eyJ", Base64, (100, 4096), "1Password, service accounts"),
    token("age-key", "AGE-SECRET-KEY-1", Upper, (58, 58), "age, format"),
    // Code hosts and registries of packages.
    token("github-token", "ghp_", Alnum, (36, 251), GITHUB),
    token("github-token", "gho_", Alnum, (36, 251), GITHUB),
    token("github-token", "ghu_", Alnum, (36, 251), GITHUB),
    token("github-token", "ghs_", Alnum, (36, 251), GITHUB),
    token("github-token", "ghr_", Alnum, (36, 251), GITHUB),
    token("github-token", "github_pat_", Word, (60, 244), GITHUB),
    token("gitlab-token", "glpat-", Dotted, (20, 300), GITLAB),
    token("gitlab-token", "gldt-", Dotted, (20, 300), GITLAB),
    token("gitlab-token", "glrt-", Dotted, (20, 300), GITLAB),
    token("gitlab-token", "glptt-", Dotted, (40, 300), GITLAB),
    token("gitlab-token", "glcbt-", Dotted, (20, 300), GITLAB),
    token("bitbucket-token", "ATCTT3xFfG", Base64, (100, 300), "Atlassian, access tokens"),
    token("atlassian-token", "ATATT3xFfG", Base64, (100, 300), "Atlassian, API tokens"),
    token("npm-token", "npm_", Alnum, (36, 36), "npm, access tokens"),
    token("pypi-token", "pypi-AgEI", UrlSafe, (50, 500), "PyPI, API tokens"),
    token("rubygems-key", "rubygems_", Hex, (48, 48), "RubyGems, API keys"),
    token("docker-token", "dckr_pat_", UrlSafe, (24, 60), "Docker, access tokens"),
    token("nuget-key", "oy2", Alnum, (43, 43), "NuGet, API keys"),
    // Providers of models.
    token("anthropic-key", "sk-ant-", UrlSafe, (32, 200), ANTHROPIC),
    token("openai-key", "sk-proj-", UrlSafe, (40, 250), OPENAI),
    token("openai-key", "sk-svcacct-", UrlSafe, (40, 250), OPENAI),
    token("openai-key", "sk-admin-", UrlSafe, (40, 250), OPENAI),
    token("openrouter-key", "sk-or-v1-", Hex, (64, 64), "OpenRouter console"),
    // OpenAI's older keys, DeepSeek, Moonshot, DashScope and gateways.
    token("model-provider-key", "sk-", Alnum, (32, 64), "OpenAI, DeepSeek, Moonshot, DashScope consoles"),
    token("hugging-face-token", "hf_", Alnum, (34, 40), "Hugging Face, access tokens"),
    token("groq-key", "gsk_", Alnum, (50, 56), "Groq console"),
    token("xai-key", "xai-", Alnum, (70, 90), "xAI console"),
    token("perplexity-key", "pplx-", Alnum, (40, 60), "Perplexity console"),
    token("replicate-token", "r8_", Alnum, (37, 37), "Replicate, API tokens"),
    token("nvidia-key", "nvapi-", UrlSafe, (60, 70), "NVIDIA, API keys"),
    token("cerebras-key", "csk-", Alnum, (40, 56), "Cerebras console"),
    token("fireworks-key", "fw_", Alnum, (22, 32), "Fireworks console"),
    token("together-key", "tgp_v1_", UrlSafe, (40, 60), "Together console"),
    token("langsmith-key", "lsv2_", Word, (40, 60), "LangSmith, API keys"),
    token("tavily-key", "tvly-", UrlSafe, (28, 60), "Tavily console"),
    // What else agents are given.
    token("slack-token", "xoxb-", UrlSafe, (24, 200), SLACK),
    token("slack-token", "xoxp-", UrlSafe, (24, 200), SLACK),
    token("slack-token", "xoxa-", UrlSafe, (24, 200), SLACK),
    token("slack-token", "xoxe.", Dotted, (40, 300), SLACK),
    token("slack-token", "xoxs-", UrlSafe, (24, 200), SLACK),
    token("slack-app-token", "xapp-1-", UrlSafe, (40, 200), SLACK),
    token("slack-webhook", "hooks.slack.com/services/", Alphabet::Path, (40, 60), "Slack, incoming webhooks"),
    token("discord-webhook", "discord.com/api/webhooks/", Alphabet::Path, (70, 110), "Discord, webhooks"),
    token("sendgrid-key", "SG.", Dotted, (60, 70), "SendGrid, API keys"),
    token("stripe-key", "sk_live_", Alnum, (24, 120), STRIPE),
    token("stripe-key", "rk_live_", Alnum, (24, 120), STRIPE),
    token("stripe-key", "sk_test_", Alnum, (24, 120), STRIPE),
    token("webhook-secret", "whsec_", Base64, (32, 64), STRIPE),
    token("square-token", "sq0csp-", UrlSafe, (43, 43), "Square, credentials"),
    token("shopify-token", "shpat_", Hex, (32, 32), SHOPIFY),
    token("shopify-token", "shpss_", Hex, (32, 32), SHOPIFY),
    token("linear-key", "lin_api_", Alnum, (32, 48), "Linear, API keys"),
    token("notion-token", "ntn_", Alnum, (40, 50), "Notion, integration tokens"),
    token("figma-token", "figd_", UrlSafe, (40, 60), "Figma, access tokens"),
    token("postman-key", "PMAK-", UrlSafe, (50, 64), "Postman, API keys"),
    token("newrelic-key", "NRAK-", Upper, (27, 27), "New Relic, API keys"),
    token("grafana-token", "glsa_", Word, (32, 60), "Grafana, service accounts"),
    token("grafana-token", "glc_", Base64, (32, 400), "Grafana Cloud, access policies"),
    token("sentry-token", "sntrys_", Base64, (60, 400), "Sentry, auth tokens"),
    token("sentry-token", "sntryu_", Hex, (64, 64), "Sentry, auth tokens"),
    token("telegram-token", ":AA", UrlSafe, (33, 33), "Telegram, bots"),
    // Of no provider.
    shaped("private-key", "-----BEGIN ", Shape::PemBegin, PEM),
    shaped("private-key", "-----END ", Shape::PemEnd, PEM),
    shaped("jwt", "eyJ", Shape::Jwt, "RFC 7519"),
    shaped("url-password", "://", Shape::UrlPassword, "RFC 3986, userinfo"),
    // Values by their names.
    named("env-value", "_KEY", false),
    named("env-value", "_TOKEN", false),
    named("env-value", "SECRET", false),
    named("env-value", "APIKEY", false),
    named("env-password", "PASSWORD", false),
    named("env-password", "PASSWD", false),
    named("env-password", "_PASS", false),
    named("env-value", "_key", true),
    named("env-value", "_token", true),
    named("env-value", "_secret", true),
    named("env-value", "apiKey", true),
    named("env-password", "password", true),
];

package secrets

import (
	"github.com/google/osv-scalibr/veles/secrets/anthropicapikey"
	"github.com/google/osv-scalibr/veles/secrets/awsaccesskey"
	"github.com/google/osv-scalibr/veles/secrets/circleci"
	"github.com/google/osv-scalibr/veles/secrets/digitaloceanapikey"
	"github.com/google/osv-scalibr/veles/secrets/dockerhubpat"
	"github.com/google/osv-scalibr/veles/secrets/gcpapikey"
	"github.com/google/osv-scalibr/veles/secrets/gcpsak"
	"github.com/google/osv-scalibr/veles/secrets/gcshmackey"
	"github.com/google/osv-scalibr/veles/secrets/grokxaiapikey"
	"github.com/google/osv-scalibr/veles/secrets/hashicorpvault"
	"github.com/google/osv-scalibr/veles/secrets/huggingfaceapikey"
	"github.com/google/osv-scalibr/veles/secrets/jwt"
	"github.com/google/osv-scalibr/veles/secrets/npmjsaccesstoken"
	"github.com/google/osv-scalibr/veles/secrets/onepasswordkeys"
	"github.com/google/osv-scalibr/veles/secrets/openai"
	"github.com/google/osv-scalibr/veles/secrets/openrouter"
	"github.com/google/osv-scalibr/veles/secrets/perplexityapikey"
	"github.com/google/osv-scalibr/veles/secrets/postmanapikey"
	"github.com/google/osv-scalibr/veles/secrets/privatekey"
	"github.com/google/osv-scalibr/veles/secrets/pypiapitoken"
	"github.com/google/osv-scalibr/veles/secrets/rubygemsapikey"
	"github.com/google/osv-scalibr/veles/secrets/sendgrid"
	"github.com/google/osv-scalibr/veles/secrets/slacktoken"
	"github.com/google/osv-scalibr/veles/secrets/squareapikey"
	"github.com/google/osv-scalibr/veles/secrets/supabase"
)

// rules lists what is looked for: credentials with a form of their own. Rules
// that go by a word nearby find too much in the objects of a cluster. GitHub's,
// GitLab's and Stripe's are ours: the library's compile their expressions when
// the program starts, whatever it is started for.
func rules() []rule {
	return []rule{
		{"private-key", library(privatekey.NewDetector()), []string{"PRIVATE KEY-----"}},
		{"jwt", library(jwt.NewDetector()), []string{"eyJ"}},
		{"aws-access-key", library(awsaccesskey.NewDetector()), []string{"AKIA", "ASIA"}},
		{"gcp-service-account", library(gcpsak.NewDetector()), []string{"auth_provider_x509_cert_url", "ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCIs"}},
		{"gcp-api-key", library(gcpapikey.NewDetector()), []string{"AIza"}},
		{"gcs-hmac-key", library(gcshmackey.NewDetector()), []string{"GOOG"}},
		{"github-token", form(`gh[opusr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}`), []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}},
		{"gitlab-token", form(`glpat-[A-Za-z0-9_-]{20}`), []string{"glpat-"}},
		{"docker-hub-token", library(dockerhubpat.NewDetector()), []string{"dckr_pat_"}},
		{"vault-token", library(hashicorpvault.NewTokenDetector()), []string{"hvs.", "hvb."}},
		{"slack-token", library(slacktoken.NewAppLevelTokenDetector()), nil},
		{"slack-token", library(slacktoken.NewAppConfigAccessTokenDetector()), nil},
		{"slack-token", library(slacktoken.NewAppConfigRefreshTokenDetector()), nil},
		{"stripe-key", form(`[sr]k_(?:live|test)_[A-Za-z0-9]{24}|whsec_[A-Za-z0-9]{32}`), []string{"k_live_", "k_test_", "whsec_"}},
		{"square-key", library(squareapikey.NewPersonalAccessTokenDetector()), nil},
		{"sendgrid-key", library(sendgrid.NewDetector()), nil},
		{"digitalocean-token", library(digitaloceanapikey.NewDetector()), nil},
		{"circleci-token", library(circleci.NewPersonalAccessTokenDetector()), nil},
		{"circleci-token", library(circleci.NewProjectTokenDetector()), nil},
		{"npm-token", library(npmjsaccesstoken.NewDetector()), nil},
		{"pypi-token", library(pypiapitoken.NewDetector()), []string{"pypi-"}},
		{"rubygems-key", library(rubygemsapikey.NewDetector()), nil},
		{"postman-key", library(postmanapikey.NewAPIKeyDetector()), nil},
		{"1password-key", library(onepasswordkeys.NewSecretKeyDetector()), nil},
		{"1password-key", library(onepasswordkeys.NewServiceTokenDetector()), nil},
		{"1password-key", library(onepasswordkeys.NewRecoveryTokenDetector()), nil},
		{"supabase-key", library(supabase.NewPATDetector()), nil},
		{"supabase-key", library(supabase.NewProjectSecretKeyDetector()), nil},
		{"openai-key", library(openai.NewDetector()), nil},
		{"anthropic-key", library(anthropicapikey.NewDetector()), nil},
		{"openrouter-key", library(openrouter.NewDetector()), nil},
		{"perplexity-key", library(perplexityapikey.NewDetector()), nil},
		{"xai-key", library(grokxaiapikey.NewAPIKeyDetector()), nil},
		{"hugging-face-token", library(huggingfaceapikey.NewDetector()), nil},
	}
}

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
	"github.com/google/osv-scalibr/veles/secrets/github"
	"github.com/google/osv-scalibr/veles/secrets/gitlabpat"
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
	"github.com/google/osv-scalibr/veles/secrets/stripeapikeys"
	"github.com/google/osv-scalibr/veles/secrets/supabase"
)

// rules lists what is looked for: credentials with a form of their own. Rules
// that go by a word nearby find too much in the objects of a cluster.
func rules() []rule {
	return []rule{
		{"private-key", privatekey.NewDetector(), []string{"PRIVATE KEY-----"}},
		{"jwt", jwt.NewDetector(), []string{"eyJ"}},
		{"aws-access-key", awsaccesskey.NewDetector(), []string{"AKIA", "ASIA"}},
		{"gcp-service-account", gcpsak.NewDetector(), []string{"auth_provider_x509_cert_url", "ewogICJ0eXBlIjogInNlcnZpY2VfYWNjb3VudCIs"}},
		{"gcp-api-key", gcpapikey.NewDetector(), []string{"AIza"}},
		{"gcs-hmac-key", gcshmackey.NewDetector(), []string{"GOOG"}},
		{"github-token", github.NewClassicPATDetector(), nil},
		{"github-token", github.NewFineGrainedPATDetector(), nil},
		{"github-token", github.NewOAuthTokenDetector(), nil},
		{"github-token", github.NewAppU2SDetector(), nil},
		{"github-token", github.NewAppS2STokenDetector(), nil},
		{"github-token", github.NewAppRefreshTokenDetector(), []string{"ghr_"}},
		{"gitlab-token", gitlabpat.NewDetector(), []string{"glpat-"}},
		{"docker-hub-token", dockerhubpat.NewDetector(), []string{"dckr_pat_"}},
		{"vault-token", hashicorpvault.NewTokenDetector(), []string{"hvs.", "hvb."}},
		{"slack-token", slacktoken.NewAppLevelTokenDetector(), nil},
		{"slack-token", slacktoken.NewAppConfigAccessTokenDetector(), nil},
		{"slack-token", slacktoken.NewAppConfigRefreshTokenDetector(), nil},
		{"stripe-key", stripeapikeys.NewSecretKeyDetector(), nil},
		{"stripe-key", stripeapikeys.NewRestrictedKeyDetector(), nil},
		{"stripe-key", stripeapikeys.NewWebhookSecretDetector(), nil},
		{"square-key", squareapikey.NewPersonalAccessTokenDetector(), nil},
		{"sendgrid-key", sendgrid.NewDetector(), nil},
		{"digitalocean-token", digitaloceanapikey.NewDetector(), nil},
		{"circleci-token", circleci.NewPersonalAccessTokenDetector(), nil},
		{"circleci-token", circleci.NewProjectTokenDetector(), nil},
		{"npm-token", npmjsaccesstoken.NewDetector(), nil},
		{"pypi-token", pypiapitoken.NewDetector(), []string{"pypi-"}},
		{"rubygems-key", rubygemsapikey.NewDetector(), nil},
		{"postman-key", postmanapikey.NewAPIKeyDetector(), nil},
		{"1password-key", onepasswordkeys.NewSecretKeyDetector(), nil},
		{"1password-key", onepasswordkeys.NewServiceTokenDetector(), nil},
		{"1password-key", onepasswordkeys.NewRecoveryTokenDetector(), nil},
		{"supabase-key", supabase.NewPATDetector(), nil},
		{"supabase-key", supabase.NewProjectSecretKeyDetector(), nil},
		{"openai-key", openai.NewDetector(), nil},
		{"anthropic-key", anthropicapikey.NewDetector(), nil},
		{"openrouter-key", openrouter.NewDetector(), nil},
		{"perplexity-key", perplexityapikey.NewDetector(), nil},
		{"xai-key", grokxaiapikey.NewAPIKeyDetector(), nil},
		{"hugging-face-token", huggingfaceapikey.NewDetector(), nil},
	}
}

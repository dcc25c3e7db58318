package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// The parts of SARIF 2.1.0 that a log of findings needs.
type (
	// SARIFLog is a whole file.
	SARIFLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Results     []sarifResult     `json:"results"`
		Invocations []sarifInvocation `json:"invocations"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful        bool                `json:"executionSuccessful"`
		ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId"`
		Level               string            `json:"level"`
		Message             sarifText         `json:"message"`
		Locations           []sarifLocation   `json:"locations"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical  `json:"physicalLocation"`
		LogicalLocations []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		ArtifactLocation struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
)

// SARIF returns the findings as a log for tools that collect those of many
// scanners. What failOn objects to is an error, the rest a warning or a note.
func (r *Report) SARIF(failOn FailOn) SARIFLog {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "etcdkit secrets scan"}}, Results: []sarifResult{}}
	for _, s := range States() {
		if s.worthNaming() {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: string(s), ShortDescription: sarifText{s.words()}})
		}
	}
	for _, f := range r.Findings {
		run.Results = append(run.Results, r.sarifResult(f, failOn))
	}
	if len(r.Detected) > 0 {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: string(Credentials), ShortDescription: sarifText{Credentials.words()}})
	}
	for _, d := range r.Detected {
		f := Finding{EtcdKey: d.EtcdKey, Resource: d.Resource, Namespace: d.Namespace, Name: d.Name, Place: d.Place, State: Credentials, Revision: d.Revision}
		result := r.sarifResult(f, failOn)
		result.Message.Text += ": " + join(d.Rules)
		run.Results = append(run.Results, result)
	}
	done := sarifInvocation{ExecutionSuccessful: true}
	for _, p := range r.Places {
		if !p.Read {
			done.ToolExecutionNotifications = append(done.ToolExecutionNotifications,
				sarifNotification{Level: "error", Message: sarifText{fmt.Sprintf("%s: not read in whole: %s", p.Place, p.Reason)}})
		}
	}
	run.Invocations = []sarifInvocation{done}
	return SARIFLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

func (r *Report) sarifResult(f Finding, failOn FailOn) sarifResult {
	level := "warning"
	switch {
	case failOn.objects(f.State, f.Place):
		level = "error"
	case f.State == PlainAsConfigured:
		level = "note"
	}
	text := fmt.Sprintf("%s %s is %s (%s", f.Resource, objectName(f), f.State.words(), f.Place)
	if f.Revision > 0 {
		text += fmt.Sprintf(", revision %d", f.Revision)
	}
	at := sarifLocation{LogicalLocations: []sarifLogical{{FullyQualifiedName: f.EtcdKey, Kind: "object"}}}
	at.PhysicalLocation.ArtifactLocation.URI = sourceURI(r.Source)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", f.EtcdKey, f.Place, f.State))
	return sarifResult{
		RuleID: string(f.State), Level: level, Message: sarifText{text + ")"}, Locations: []sarifLocation{at},
		PartialFingerprints: map[string]string{"object/v1": hex.EncodeToString(sum[:16])},
	}
}

// sourceURI returns what was scanned as a URI reference: a path with what a URI
// reserves encoded, or the first of several endpoints.
func sourceURI(source string) string {
	if strings.Contains(source, "://") {
		first, _, _ := strings.Cut(source, ",")
		if u, err := url.Parse(first); err == nil {
			u.User = nil
			return u.String()
		}
	}
	return (&url.URL{Path: filepath.ToSlash(source)}).String()
}

func objectName(f Finding) string {
	if f.Namespace == "" {
		return f.Name
	}
	return f.Namespace + "/" + f.Name
}

// words says what a state means.
func (s State) words() string {
	switch s {
	case Plain:
		return "stored in clear"
	case PlainAsConfigured:
		return "stored in clear, as configured"
	case Stale:
		return "not encrypted with the current provider and key"
	case Unknown:
		return "stored in no format of Kubernetes"
	case Credentials:
		return "in clear with what looks like a credential"
	}
	return string(s)
}

// objects reports whether f objects to a state in a place.
func (f FailOn) objects(s State, p Place) bool {
	return slices.ContainsFunc(f, func(on Condition) bool { return on.State == s && (on.Place == "" || on.Place == p) })
}

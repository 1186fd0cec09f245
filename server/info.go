// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/treecore/treecore/engine"
	"github.com/treecore/treecore/tree"
)

// logger gives what net/http has to say to the server's log.
func logger(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelWarn) }

// modelInfo is the model as OpenAI's clients know it.
type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
	Length  int    `json:"max_model_len"` // tokens of a prompt and its output
}

func (s *Server) modelInfo() modelInfo {
	return modelInfo{ID: s.opts.Model, Object: "model", Created: s.started.Unix(), Owner: "treecore", Length: s.context}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []modelInfo{s.modelInfo()}})
}

func (s *Server) modelByName(w http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("id"); id != s.opts.Model {
		writeError(w, r, &apiError{
			status: http.StatusNotFound, kind: invalidRequest, param: "model", code: "model_not_found",
			message: fmt.Sprintf("model %q is not served here: there is %q", short([]byte(id)), s.opts.Model),
		})
		return
	}
	writeJSON(w, http.StatusOK, s.modelInfo())
}

// serverInfo is what /server_info says.
type serverInfo struct {
	Model       string             `json:"model"`
	Engine      string             `json:"engine"`
	Components  []string           `json:"components"`
	PageSize    int                `json:"page_size"`
	Window      int                `json:"sliding_window,omitempty"`
	Grid        int                `json:"checkpoint_grid,omitempty"`
	Vocabulary  int                `json:"vocabulary"`
	MaxLength   int                `json:"max_model_len"`
	MaxPrompt   int                `json:"max_prompt_tokens"`
	MaxQueue    int                `json:"max_queue"`
	MaxBody     int64              `json:"max_body_bytes"`
	MaxParallel int                `json:"max_parallel"`
	Device      map[string]poolUse `json:"device"`
	Host        map[string]poolUse `json:"host,omitempty"`
	WritePolicy string             `json:"write_policy,omitempty"`
	Waiting     int                `json:"waiting"`
	Running     int                `json:"running"`
	Steps       int64              `json:"steps"`
	Mismatched  int64              `json:"mismatched_values"`
	Uptime      float64            `json:"uptime_seconds"`
	More        map[string]any     `json:"options,omitempty"`
}

// poolUse is the use of one pool: tokens, or states.
type poolUse struct {
	Size      int `json:"size"`
	Free      int `json:"free"`
	Evictable int `json:"evictable"`
	Protected int `json:"protected"`
	Held      int `json:"held"`
}

func (s *Server) serverInfo(w http.ResponseWriter, r *http.Request) {
	i := serverInfo{
		Model: s.opts.Model, MaxLength: s.context, MaxPrompt: s.maxPrompt, MaxQueue: s.opts.MaxQueue,
		MaxBody: s.opts.MaxBody, MaxParallel: s.opts.MaxParallel, More: s.opts.Info,
		Device: map[string]poolUse{}, Uptime: time.Since(s.started).Seconds(),
	}
	err := s.loop.do(r.Context(), func(e *engine.Engine) {
		c, spec := e.Cache(), e.Spec()
		o := c.Tree().Options()
		i.Engine, i.PageSize, i.Window, i.Vocabulary = spec.Name, c.PageSize(), spec.Window, spec.Vocabulary
		if o.Components.Has(tree.Mamba) {
			i.Grid = o.CheckpointGrid
		}
		if host := c.Options().Host; host != nil {
			i.Host, i.WritePolicy = map[string]poolUse{}, host.Policy.String()
		}
		for id := range tree.Component(tree.NumComponents) {
			if !o.Components.Has(id) {
				continue
			}
			i.Components = append(i.Components, id.String())
			u := c.Usage(id)
			i.Device[id.String()] = poolUse{u.Size, u.Free, u.Evictable, u.Protected, u.Held}
			if h := c.HostUsage(id); h.Size > 0 {
				i.Host[id.String()] = poolUse{Size: h.Size, Free: h.Free, Evictable: h.Cached, Held: h.Held}
			}
		}
		i.Waiting, i.Running = e.Queued()
		i.Steps = e.Stats().Steps
		for _, n := range e.Stats().Mismatched {
			i.Mismatched += n
		}
	})
	if err != nil {
		writeError(w, r, s.unavailable(err))
		return
	}
	writeJSON(w, http.StatusOK, i)
}

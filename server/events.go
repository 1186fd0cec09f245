// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"time"
)

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	each    time.Duration // that a client may take for one
	begun   bool
}

func (s *Server) newEvents(w http.ResponseWriter) *events {
	return &events{w: w, control: http.NewResponseController(w), each: s.opts.SlowClient}
}

func (e *events) begin() {
	if e.begun {
		return
	}
	e.begun = true
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would keep pieces back
	e.w.WriteHeader(http.StatusOK)
}

// send sends events, each a JSON document.
func (e *events) send(all ...any) error {
	e.begin()
	_ = e.control.SetWriteDeadline(time.Now().Add(e.each)) // a recorder in tests has none
	for _, x := range all {
		b, err := marshal(x)
		if err != nil {
			return err
		}
		if err := e.line(b); err != nil {
			return err
		}
	}
	return e.flush()
}

// line writes an event whose data ends in a new line.
func (e *events) line(b []byte) error {
	_, err := e.w.Write(append(append([]byte("data: "), b...), '\n'))
	return err
}

func (e *events) flush() error {
	if err := e.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// end ends the stream. A mistake that comes before the first event is an answer
// of its own; later it is the last event.
func (e *events) end(r *http.Request, problem *apiError) {
	switch {
	case problem != nil && !e.begun:
		writeError(e.w, r, problem)
		return
	case problem == errGone:
		return
	case problem != nil:
		if e.send(errorBody(isOpenAI(r), problem)) != nil {
			return
		}
	}
	e.begin()
	_ = e.control.SetWriteDeadline(time.Now().Add(e.each))
	if e.line([]byte("[DONE]\n")) == nil {
		_ = e.flush() // the client may have gone
	}
}

// newID makes a name for an answer that no other one has.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

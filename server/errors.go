// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/treecore/treecore/cache"
	"github.com/treecore/treecore/engine"
)

// apiError is an answer that says what is wrong and what to do about it.
type apiError struct {
	status     int
	message    string
	kind       string // OpenAI's "type"
	param      string // the field that is wrong; "" for none
	code       string // OpenAI's "code"; "" for none
	retryAfter int    // seconds; 0: not said
}

func (e *apiError) Error() string { return e.message }

// The types that OpenAI's clients know.
const (
	invalidRequest = "invalid_request_error"
	serverFault    = "server_error"
)

// badField says that a field of the request is wrong.
func badField(param, format string, args ...any) *apiError {
	message := fmt.Sprintf(format, args...)
	if param != "" {
		message = param + ": " + message
	}
	return &apiError{status: http.StatusBadRequest, message: message, kind: invalidRequest, param: param}
}

func tooLong(param, format string, args ...any) *apiError {
	e := badField(param, format, args...)
	e.code = "context_length_exceeded"
	return e
}

func queueFull(waiting, most int) *apiError {
	return &apiError{
		status: http.StatusTooManyRequests, kind: "rate_limit_exceeded", code: "queue_full", retryAfter: 1,
		message: fmt.Sprintf("%d requests wait and the queue holds %d: send it again later, or raise --max-queue", waiting, most),
	}
}

func draining() *apiError {
	return &apiError{
		status: http.StatusServiceUnavailable, kind: serverFault, code: "shutting_down", retryAfter: 5,
		message: "the server is shutting down: send it to another one, or again when it is back",
	}
}

func internal(err error) *apiError {
	return &apiError{status: http.StatusInternalServerError, message: err.Error(), kind: serverFault}
}

// errGone marks a request whose client has gone: nobody reads the answer.
var errGone = &apiError{status: 499, message: "the client has gone", kind: invalidRequest}

// unavailable answers a command that the loop did not take.
func (s *Server) unavailable(err error) *apiError {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return errGone
	case errors.Is(err, errEnded):
		return draining()
	}
	return &apiError{status: http.StatusServiceUnavailable, message: err.Error(), kind: serverFault, code: "engine_failed"}
}

// refusal answers a request that the engine does not take, or gave up.
func refusal(err error) *apiError {
	var large *cache.TooLargeError
	var room *engine.NoRoomError
	var argument *cache.ArgumentError
	switch {
	case errors.As(err, &large), errors.As(err, &room):
		return tooLong("", "%v", err)
	case errors.As(err, &argument):
		return badField("", "%v", err)
	}
	return internal(err)
}

// isOpenAI tells the calls whose errors have OpenAI's shape.
func isOpenAI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

// errorBody is an error in the shape that the clients of a call expect.
func errorBody(openAI bool, e *apiError) any {
	if !openAI {
		return map[string]any{"error": map[string]any{"message": e.message}}
	}
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	o := object{Message: e.message, Type: e.kind}
	if e.param != "" {
		o.Param = &e.param
	}
	if e.code != "" {
		o.Code = &e.code
	}
	return map[string]any{"error": o}
}

func writeError(w http.ResponseWriter, r *http.Request, e *apiError) {
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, e.status, errorBody(isOpenAI(r), e))
}

package guard_test

import (
	"strings"
	"testing"

	"signalbox/stream/guard"
)

// pieces returns a stream of one choice with a chunk for every n bytes of a text.
func pieces(text string, n int) []string {
	list := []string{role()}
	for len(text) > n {
		list, text = append(list, chunk(text[:n])), text[n:]
	}
	return append(list, chunk(text), stop(), done)
}

// TestTextThatTurnsOutToBeJSONIsNotChanged checks that JSON is recognised by its start if no
// request field asks for it, however it is cut. Prose may begin like JSON.
func TestTextThatTurnsOutToBeJSONIsNotChanged(t *testing.T) {
	t.Parallel()
	g := guardOf(t, &judge{}, guard.Options{})
	const claim = "All is well. This is false."
	for name, c := range map[string]struct {
		text   string
		marked bool
	}{
		"an object":             {`{"a": "` + claim + `"}`, false},
		"behind blanks":         {" \n\t{\n  \"a\": \"" + claim + `"}`, false},
		"a list of texts":       {`["` + claim + `", "x"]`, false},
		"a list of one text":    {`["` + claim + `"]`, false},
		"a list of a long text": {`["` + strings.Repeat("All is well. ", 9) + claim + `"]`, false},
		"a list of objects":     {`[{"a": "` + claim + `"}]`, false},
		"a list in a list":      {`[[1, "a"], ["` + claim + `"]]`, false},
		"a block":               {"```json\n{\"a\": 1}\n```\n" + claim, false},
		"a block in capitals":   {"```JSON\n{\"a\": 1}\n```\n" + claim, false},
		"a script":              {"#!/bin/sh\necho " + claim + "\n", false},
		"a page":                {"<!DOCTYPE html>\n<p>" + claim + "</p>\n", false},
		"XML":                   {"<?xml version=\"1.0\"?>\n<p>" + claim + "</p>\n", false},
		"a file of Go":          {"package main\n\n// " + claim + "\n", false},
		"a file of Python":      {"from os import path, sep\n\n# " + claim + "\n", false},
		"another of Python":     {"import os.path as p\r\n\r\n# " + claim + "\r\n", false},
		"a file of C":           {"#include <stdio.h>\n// " + claim + "\n", false},
		"a file of JavaScript":  {"import React, { useState } from 'react';\n// " + claim + "\n", false},
		"fields of DSPy":        {"[[ ## answer ## ]]\n" + claim + "\n\n[[ ## days ## ]]\n5\n", false},
		"duties":                {"import duties are high. " + claim, true},
		"duties in a line":      {"import duties are high\n\n" + claim, true},
		"a packet":              {"package 5 is here. " + claim, true},
		"a place":               {"from here on. " + claim, true},
		"a heading":             {"# Facts\n\n" + claim, true},
		"a tag":                 {"<b>All</b> is well. This is false.", true},
		"prose":                 {claim + ` {"a": 1}`, true},
		"a citation":            {"[1] says: " + claim, true},
		"two citations":         {"[1, 2] say: " + claim, true},
		"a citation in full":    {"[Doe 2020] says: " + claim, true},
		"a time":                {"[12:30] " + claim, true},
		"a date":                {"[2024-01-31] " + claim, true},
		"a link":                {"[All](https://example.com) is well. This is false.", true},
		"a link of a quotation": {`["All"](https://example.com) is well. This is false.`, true},
		"a box":                 {"[ ] All is well. This is false.", true},
		"a box that is ticked":  {"[x] All is well. This is false.", true},
		"a note":                {"[[1]] says: " + claim, true},
		"a name in braces":      {"{name} says: " + claim, true},
		"a formula":             {`{\bf All} is well. This is false.`, true},
		"another block":         {"```go\nx\n```\n" + claim, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{1, 3, 1 << 10} {
				got, out, err := pass(t, g, jobOf(t, guard.Annotate), pieces(c.text, n)...)
				heard := listen(t, got)
				if err != nil || out.Failed != 1 || heard.summary == nil || out.Mode != guard.Annotate {
					t.Fatalf("error %v, %+v\n%s", err, out, got)
				}
				if marked := strings.Contains(heard.texts[0], "[unverified]"); marked != c.marked {
					t.Errorf("in pieces of %d the text is %q", n, heard.texts[0])
				}
				if !c.marked && (heard.texts[0] != c.text || heard.marks != 1) {
					t.Errorf("in pieces of %d %d chunks tell beside %q", n, heard.marks, heard.texts[0])
				}
			}
			whole, _, err := g.Body(t.Context(), []byte(body(c.text)), jobOf(t, guard.Annotate))
			if err != nil || strings.Contains(string(whole), "[unverified]") != c.marked {
				t.Errorf("error %v, body %s", err, whole)
			}
		})
	}
}

// TestTheModeOfAFormHoldsForTextThatTurnsOutToBeJSON checks that the operator's mode for a format
// applies as soon as the text is known to have it.
func TestTheModeOfAFormHoldsForTextThatTurnsOutToBeJSON(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	const text = `{"a": "All is well. This is false. Good."}`
	for _, c := range []struct {
		mode, formed, became guard.Mode
		want                 string
	}{
		{guard.Annotate, guard.Annotate, guard.Annotate, text},
		{guard.Annotate, guard.Terminate, guard.Terminate, `{"a": "All is well. This is `},
		{guard.Annotate, guard.Hold, guard.Hold, `{"a": "All is well. `},
		{guard.Hold, guard.Hold, guard.Hold, `{"a": "All is well. `},
	} {
		job := jobOf(t, c.mode)
		job.Formed = c.formed
		got, out, err := pass(t, g, job, words(text)...)
		heard := listen(t, got)
		cut := c.became != guard.Annotate
		if err != nil || heard.texts[0] != c.want || out.Cut != cut || out.Mode != c.became {
			t.Errorf("%v, %v: error %v, %q, %+v", c.mode, c.formed, err, heard.texts[0], out)
		}
		if why := heard.finish[0]; cut != (why == "content_filter") {
			t.Errorf("%v, %v: ended with %q", c.mode, c.formed, why)
		}
		prose := "Well: " + text
		if _, out, err = pass(t, g, job, words(prose)...); err != nil || out.Cut || out.Mode != c.mode {
			t.Errorf("%v, %v: prose: error %v, %+v", c.mode, c.formed, err, out)
		}
		whole, out, err := g.Body(t.Context(), []byte(body(text)), job)
		if err != nil || out.Cut != cut || strings.Contains(string(whole), "[unverified]") {
			t.Errorf("%v, %v: body: error %v, %+v %s", c.mode, c.formed, err, out, whole)
		}
	}
}

// TestHoldDoesNotBreakJSONWithinAText checks that in JSON within a text a part of a string may be
// replaced, and that otherwise the answer ends, because the remainder would not be JSON.
func TestHoldDoesNotBreakJSONWithinAText(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for text, want := range map[string]string{
		`So: {"a": "All is well. This is false. Good."}`: `So: {"a": "All is well. [unverified] Good."}`,
		"Input.\n{\"a\": \"This is false. Good.\"}":      "Input.\n{\"a\": \"[unverified] Good.\"}",
		"Input.\n{\"a\": \"Well.\", \"b\": false}\nSo.":  "Input.\n{\"a\": \"Well.\", \"b\": false}\nSo.",
		"Input.\n{\"a\": \"Well.\", \"b\": \"false 5\"}": "Input.\n{\"a\": \"Well.\", \"b\": \"",
		`Input {"a": "This is false. Good."} is. So.`:    "",
	} {
		job := jobOf(t, guard.Hold)
		job.Formed = guard.Hold
		got, out, err := pass(t, g, job, words(text)...)
		heard := listen(t, got)
		cut := len(want) < len(text) && !strings.Contains(want, "unverified")
		if err != nil || heard.texts[0] != want || out.Cut != cut {
			t.Errorf("error %v, %q, %+v", err, heard.texts[0], out)
		}
		whole, out, err := g.Body(t.Context(), []byte(body(text)), job)
		if err != nil || out.Cut != cut || !strings.Contains(string(whole), strings.Trim(quote(want), `"`)+`"`) {
			t.Errorf("body: error %v, %+v %s", err, out, whole)
		}
	}
}

// TestJSONIsCheckedValueByValue checks that each value of a JSON answer is a claim, wherever the
// chunks cut it. Its text is never changed, hold ends before the value, and positions are those of
// the escaped text.
func TestJSONIsCheckedValueByValue(t *testing.T) {
	const text = `{"confidence": 0.92, "a": "Gr\u00fcn is well.\n- This is false.", "page": 3, "b": "so",` +
		` "c": [7, "Das ist gut."]}`
	for _, fenced := range []bool{false, true} {
		answer, code := text, 0
		if fenced {
			answer = "```json\n" + text + "\n```"
			code = len("```json\n")
		}
		before, _, _ := strings.Cut(answer, "This")
		for _, mode := range []guard.Mode{guard.Observe, guard.Annotate, guard.Hold} {
			want := answer
			if mode == guard.Hold {
				want = before
			}
			for _, mayAnnotate := range []bool{false, true} {
				g := guardOf(t, &quick{}, guard.Options{})
				job := jobOf(t, mode)
				job.MayAnnotate, job.Formed = mayAnnotate, mode
				job.Policy.Summary = true
				for _, n := range []int{1, 2, 5, 1 << 10} {
					got, out, err := pass(t, g, job, pieces(answer, n)...)
					heard := listen(t, got)
					held := mode == guard.Hold
					if err != nil || !strings.HasPrefix(want, heard.texts[0]) || heard.texts[0] != want && (!held || n < 1<<10) ||
						out.Failed != 1 || out.Cut != held {
						t.Fatalf("%v in pieces of %d: error %v, %q, %+v", mode, n, err, heard.texts[0], out)
					}
					all, ok := heard.summary["guard"].(map[string]any)
					if !ok || mode != guard.Hold && all["claims"] != 4.0 {
						t.Fatalf("%v in pieces of %d: summary %v", mode, n, heard.summary)
					}
					failed, _ := all["failed"].([]any)
					first, _ := failed[0].(map[string]any)
					at := float64(code + strings.Index(text, "This"))
					if len(failed) != 1 || first["start"] != at || first["end"] != at+14 {
						t.Errorf("%v in pieces of %d: failed %v", mode, n, failed)
					}
				}
				whole, out, err := g.Body(t.Context(), []byte(body(answer)), job)
				kept := strings.Contains(string(whole), strings.Trim(quote(answer), `"`))
				if err != nil || out.Failed != 1 || kept != (mode != guard.Hold) {
					t.Errorf("%v: body: error %v, %+v %s", mode, err, out, whole)
				}
			}
		}
	}
}

// TestABlockOfJSONBehindTextStaysJSON checks that a JSON block after text is checked in every mode
// and remains JSON: marks are beside the text or after the block, and hold replaces only a part of
// a string.
func TestABlockOfJSONBehindTextStaysJSON(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	const (
		begin = "Here it is:\n\n```json\n{\"a\": \"All is well. "
		end   = " Good.\"}\n```\n"
		text  = begin + "This is false." + end + "All is well."
		cited = "Here it is:\n\n> {\n>   \"b\": \"All is well.\",\n>   \"a\": \"This is false.\"\n> }\n\n"
		value = "Here it is:\n```json\n{\"a\": 5, \"b\": \"false 5\", \"c\": 6}\n```"
	)
	for _, c := range []struct {
		mode       guard.Mode
		text, want string
		marks      int
		cut        bool
	}{
		{guard.Annotate, text, text, 1, false},
		{guard.Annotate, text + " That is false.", text + " That is false. [unverified]", 1, false},
		{guard.Annotate, value, value, 2, false}, // "c" is of the object named "false 5"
		{guard.Hold, text, begin + "[unverified]" + end + "All is well.", 0, false},
		{guard.Annotate, cited, cited, 1, false},
		{guard.Hold, cited, strings.Replace(cited, "This is false.", "[unverified]", 1), 0, false},
		{guard.Hold, value, "Here it is:\n```json\n{\"a\": 5, \"b\": \"", 0, true},
		{guard.Terminate, value, "Here it is:\n```json\n{\"a\": 5, \"b\": \"", 0, true},
	} {
		for _, n := range []int{1, 4, 1 << 10} {
			job := jobOf(t, c.mode)
			job.Formed = c.mode
			got, out, err := pass(t, g, job, pieces(c.text, n)...)
			heard := listen(t, got)
			if err != nil || out.Cut != c.cut || heard.marks != c.marks ||
				heard.texts[0] != c.want && (!c.cut || !strings.HasPrefix(c.text, heard.texts[0])) {
				t.Errorf("%v in pieces of %d: error %v, %+v, %d marks beside %q", c.mode, n, err, out, heard.marks, heard.texts[0])
			}
		}
		job := jobOf(t, c.mode)
		job.Formed = c.mode
		whole, out, err := g.Body(t.Context(), []byte(body(c.text)), job)
		if err != nil || out.Cut != c.cut || !strings.Contains(string(whole), strings.Trim(quote(c.want), `"`)+`"`) {
			t.Errorf("%v: body: error %v, %+v %s", c.mode, err, out, whole)
		}
	}
}

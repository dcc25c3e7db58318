package main

import "strings"

const unknown = "unknown"

// permitted are the licences whose code may be linked into an Apache-2.0
// program that is given away as a binary.
func permitted() []string { return []string{"Apache-2.0", "MIT", "BSD", "ISC", "MPL-2.0"} }

// kindOf tells a licence from its text. One that asks for more than the others
// decides where there are several; the words of a title are in capitals, for
// other licences name those too.
func kindOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, k := range []struct{ name, words string }{
		{"AGPL", "GNU AFFERO GENERAL PUBLIC LICENSE"},
		{"LGPL", "GNU LESSER GENERAL PUBLIC LICENSE"},
		{"GPL", "GNU GENERAL PUBLIC LICENSE"},
		{"SSPL", "Server Side Public License"},
		{"BUSL", "Business Source License"},
		{"Commons Clause", "Commons Clause"},
		{"MPL-2.0", "Mozilla Public License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License, version 2.0"},
		{"Apache-2.0", "Apache License Version 2.0"},
		{"BSD", "Redistribution and use in source and binary forms"},
		{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	} {
		if strings.Contains(text, k.words) {
			return k.name
		}
	}
	return unknown
}

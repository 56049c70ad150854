package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
)

// source is what one Go package's non-test files count.
type source struct {
	sentences     int      // of comments
	constructions []string // "file:line: sentence" of those with at least one of the ten constructions
	functions     int
	oneWord       []string // "file:line: name" of functions whose name is one word, methods included
}

// readSources counts each package below a folder, by its path.
func readSources(root string) (map[string]*source, error) {
	all := map[string]*source{}
	return all, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(file) {
			return err
		}
		folder := filepath.Dir(path)
		if all[folder] == nil {
			all[folder] = &source{}
		}
		all[folder].addFile(positions, file)
		return nil
	})
}

func (s *source) addFile(positions *token.FileSet, file *ast.File) {
	for _, group := range file.Comments {
		for _, sentence := range splitSentences(group.Text()) {
			s.sentences++
			if hasConstruction(sentence) {
				s.constructions = append(s.constructions, locate(positions, group, sentence))
			}
		}
	}
	for _, declared := range file.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok && f.Name.Name != "main" && f.Name.Name != "init" {
			s.functions++
			if isOneWord(f.Name.Name) {
				s.oneWord = append(s.oneWord, locate(positions, f.Name, f.Name.Name))
			}
		}
	}
}

func locate(positions *token.FileSet, at ast.Node, text string) string {
	p := positions.Position(at.Pos())
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, text)
}

// isOneWord says whether a name has no capital behind a small letter: settle, Of, HTTP, but not settleAll.
func isOneWord(name string) bool {
	small := false
	for _, r := range name {
		if small && unicode.IsUpper(r) {
			return false
		}
		small = small || unicode.IsLower(r)
	}
	return true
}

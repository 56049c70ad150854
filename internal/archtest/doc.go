// Package archtest holds packages to what they may import, and code to what contributing.md asks of it.
//
// In: the imports of every file of this module that is no test. Out: test failures that name the file and the wall that
// it breaks.
package archtest

// Package archtest guards the walls between packages.
//
// In: the imports of every file of this module that is no test. Out: test failures that name the file and the wall that
// it breaks.
package archtest

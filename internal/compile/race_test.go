//go:build race

package compile_test

const raceDetector = true

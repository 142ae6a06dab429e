// Package kernelinterrupts asks whether what a tracer sends, counted cause by
// cause, is what real kernels were seen to take. It holds the ledgers of package
// kernels against its measurements, row by row, and hides no difference.
package kernelinterrupts

// The experiment, as the command line spells it.
const (
	Name     = "kernel-interrupts"
	Question = "Does the ledger of a tracer's interrupts predict what each CPU of a real kernel takes?"
)

// Package batch runs the parts of a sweep on the batch systems that exist: Slurm, and processes of
// this machine. It queues one task for each part, waits, and queues again what failed.
//
// A task is a process that runs one part and writes the part's results into the directory that all
// machines share (lab.RunPart). This package knows results only as parts that are missing.
package batch

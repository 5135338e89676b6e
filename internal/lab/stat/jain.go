package stat

// Jain is Jain's index of fairness: 1 if all have the same, 1/n if one of n has it all. Of
// nothing, and of nobody who has anything, it is 1: they are alike.
func Jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}

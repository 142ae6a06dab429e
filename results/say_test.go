// SPDX-License-Identifier: Apache-2.0

package results

import "testing"

// TestSay: numbers as people read them, at the ends of each way.
func TestSay(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Duration(456e3), "456 us"}, {Duration(9.9994e6), "9999 us"}, {Duration(1e7), "10 ms"}, {Duration(47.4e6), "47 ms"},
		{Duration(999.4e6), "999 ms"}, {Duration(1e9), "1.00 s"}, {Duration(1.204e9), "1.20 s"},
		{Percent(0.12345), "12.35 %"}, {Thousands(1234567), "1,234,567"}, {Thousands(int64(12)), "12"},
		{Thousands(0.5), "0.5"}, {Thousands(0), "0"}, {Thousands(999), "999"}, {Thousands(1000), "1,000"},
		{Thousands(45000.0), "45,000"}, {Thousands(-1500.5), "-1,500.5"}, {Thousands(uint64(1 << 40)), "1,099,511,627,776"},
		{Fixed(2, 1.005), "1.00"}, {Fixed(0, 2.6), "3"}, {P(1), "1.0000"}, {P(0.05), "0.0500"}, {P(0.0001), "0.0001"},
		{P(0.00009), "below 0.0001"}, {P(0), "below 0.0001"},
		{Seconds(0.0123), "12.3 ms"}, {Seconds(0.1), "0.1 s"}, {Seconds(0.09), "90 ms"}, {Seconds(119), "119 s"},
		{Seconds(120), "2 minutes"}, {Seconds(2051), "34.2 minutes"},
		{Four(12345), "1.234e+04"}, {Four(0.12345), "0.1235"}, {Two(0.999), "1"}, {Two(34.2), "34"},
		{Short(999.4), "999"}, {Short(1000), "1,000"}, {Short(45678.9), "45,679"}, {Short(0.12345), "0.123"},
		{Tenth(1.25), "1.3"}, {Tenth(3), "3"}, {Plain(1e6), "1000000"}, {Plain(0.1), "0.1"},
		{About(651e3), "650 us"}, {About(1.44e6), "1.4 ms"}, {About(0.996e9), "1000 ms"}, {About(99.6e9), "100 s"},
		{About(2051e9), "34 min"}, {About(12600e9), "3.5 h"}, {About(12.3), "12 ns"}, {About(0), "0 ns"},
		{Say["us"](1234), "1.234"}, {Say["ms"](1.5e6), "1.5"}, {Say["ns"](1500), "1.5 us"}, {Say["bytes"](2048), "2 KiB"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}

// Functions of two numbers, of the kinds of code that compilers make of integers. main prints
// what each gives, so that what is emulated can be compared with the CPU below.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define F __attribute__((noinline, noclone)) uint64_t

F f_sums(uint64_t a, uint64_t b) { return a + 3 * b - (a ^ b) + (a & ~b) - (b | 0x55); }
F f_narrow(uint64_t a, uint64_t b) { return (uint8_t)(a + b) * 7u + (uint16_t)(a - b) + (int8_t)a + (int16_t)b + (int32_t)(a * b); }
F f_shifts(uint64_t a, uint64_t b)
{
	return (a << (b & 63)) + (a >> (b & 31)) + (uint64_t)((int64_t)a >> (b & 63)) + ((uint32_t)a << (b & 31)) +
	       (uint64_t)(int64_t)((int32_t)a >> (b & 31));
}
F f_signed(uint64_t a, uint64_t b)
{
	int64_t x = a, y = b;
	int32_t u = a, v = b;
	int8_t p = a, q = b;
	return (x < y) + 2 * (x <= y) + 4 * (u > v) + 8 * (u >= v) + 16 * (p < q) + 32 * (a < b) + 64 * ((uint32_t)a <= (uint32_t)b) +
	       128 * ((uint16_t)a > (uint16_t)b) + 256 * (x < 0) + 512 * (v > 0);
}
F f_bits(uint64_t a, uint64_t b)
{
	return __builtin_ctzll(a | 1ull << 63) + 100 * (63 - __builtin_clzll(b | 1)) + ((a >> (b & 63)) & 1) + (a >> 17 | a << 47) * 0 +
	       (a & 1ull << (b & 63) ? 1000 : 0);
}
F f_wide(uint64_t a, uint64_t b)
{
	unsigned __int128 x = (unsigned __int128)a << 64 | b, y = (unsigned __int128)b << 64 | a;
	unsigned __int128 s = x + y, d = x - y;
	return (uint64_t)(s >> 64) ^ (uint64_t)s ^ (uint64_t)(d >> 64) ^ (uint64_t)d;
}
F f_branches(uint64_t a, uint64_t b)
{
	uint64_t sum = 0;
	for (int i = 0; i < (int)(a & 31); i++) {
		switch ((b >> i) & 7) {
		case 0: sum += i; break;
		case 1: sum ^= a; break;
		case 2: sum -= 5; break;
		case 3: sum = -sum; break;
		case 4: sum = ~sum; break;
		case 5: sum++; break;
		case 6: sum--; break;
		default: sum *= 3;
		}
	}
	return sum;
}
struct entry { int32_t at; uint8_t op, len; uint16_t rest; };
static struct entry table[64];
static uint64_t ordered[64];
F f_memory(uint64_t a, uint64_t b)
{
	for (int i = 0; i < 64; i++) {
		table[i] = (struct entry){ (int32_t)(a >> (i & 31)), (uint8_t)(b >> i), (uint8_t)i, (uint16_t)(a * i) };
		ordered[i] = table[i].at + (int64_t)table[i].op * table[i].len - table[i].rest;
	}
	for (int i = 1; i < 64; i++)
		for (int j = i; j > 0 && ordered[j] < ordered[j - 1]; j--) {
			uint64_t t = ordered[j];
			ordered[j] = ordered[j - 1];
			ordered[j - 1] = t;
		}
	return ordered[a & 63] ^ ordered[b & 63];
}
F f_atomic(uint64_t a, uint64_t b)
{
	static uint64_t v;
	static uint32_t w;
	v = a;
	w = b;
	uint64_t old = __atomic_fetch_add(&v, b, 5), expected = a + b;
	__atomic_compare_exchange_n(&v, &expected, a ^ b, 0, 5, 5);
	uint32_t was = __atomic_exchange_n(&w, (uint32_t)a, 5);
	expected = 12345;
	__atomic_compare_exchange_n(&v, &expected, 7, 0, 5, 5);
	return old + v + was + w + expected + (__atomic_sub_fetch(&w, 1, 5) == 0);
}

#define ALL(X) X(f_sums) X(f_narrow) X(f_shifts) X(f_signed) X(f_bits) X(f_wide) X(f_branches) X(f_memory) X(f_atomic)

int main(void)
{
	uint64_t x = 88172645463325252ull;
	for (int i = 0; i < 300; i++) {
		uint64_t n[2];
		for (int k = 0; k < 2; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17; // xorshift64, Marsaglia
			n[k] = i % 3 == 0 ? x % 5 : i % 3 == 1 ? x | ~0ull << 32 : x;
		}
#define LINE(f) printf(#f " %llu %llu %llu\n", (unsigned long long)n[0], (unsigned long long)n[1], (unsigned long long)f(n[0], n[1]));
		ALL(LINE)
	}
}

// What the kernels of treadle need beside CUDA C itself: the scalar functions of the kernel IR whose
// meaning C has not, and how the threads of a team combine what each has found.
//
// The same text is compiled by NVRTC and nvcc, and as C++ by the tests, which run kernels on the
// processor (tests/runtime/gpu/shim.hpp).

#ifndef TD_SHIM
#define TD_KERNEL extern "C" __global__ void
#define TD_DEVICE static __device__ __forceinline__
// Memory that the threads of a block share, from a byte of what the launch gives.
#define TD_SHARED(T, name, count, first) T *const name = (T *)(td_shared + first)
extern __shared__ __align__(16) unsigned char td_shared[];
#define TD_POINTER(T) T *__restrict__
#define TD_SAME_POINTER(T) T *
#define TD_FIELD(T) T *
#define TD_BYTES unsigned char *
#define TD_ACTIVE(active) (active)
#define TD_PARAMETER __grid_constant__
#define TD_NEXT_STEP __syncthreads()  // between steps of one block, which change what all use
#define TD_LEAVE return  // a thread that its block does not need: no barrier waits for it

// 16-bit floats by the instructions that CUDA's headers for them, which may be missing, stand for.
struct td_f16 { unsigned short bits; };
struct td_bf16 { unsigned short bits; };
TD_DEVICE float td_half_to_float(td_f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
TD_DEVICE td_f16 td_float_to_half(float x) {
  td_f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
TD_DEVICE td_f16 td_double_to_half(double x) {
  td_f16 y;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
  return y;
}
TD_DEVICE float td_bfloat_to_float(td_bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
TD_DEVICE td_bf16 td_float_to_bfloat(float x) {
  td_bf16 y;
  const unsigned bits = __float_as_uint(x);
  y.bits = x != x ? bits >> 16 | 0x40 : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return y;
}
TD_DEVICE td_bf16 td_double_to_bfloat(double x) {
  float y = (float)x;
  if (isfinite(y) && (double)y != x) {  // rounded to odd first, so that it is rounded once
    unsigned bits = __float_as_uint(y);
    if (fabs((double)y) > fabs(x)) bits--;
    y = __uint_as_float(bits | 1);
  }
  return td_float_to_bfloat(y);
}
#endif
#ifndef NAN  // NVRTC has no math.h
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#endif

typedef long long td_index;

template <typename T> struct td_complex { T re, im; };
template <typename T> TD_DEVICE td_complex<T> td_join(T re, T im) { td_complex<T> z = {re, im}; return z; }

// -- elements of arrays: 16-bit floats are computed with as float ---------------------------------

template <typename T> TD_DEVICE T td_widen(T x) { return x; }
TD_DEVICE float td_widen(td_f16 x) { return td_half_to_float(x); }
TD_DEVICE float td_widen(td_bf16 x) { return td_bfloat_to_float(x); }

template <typename T, typename C> struct td_narrowing { TD_DEVICE T of(C x) { return x; } };
template <> struct td_narrowing<td_f16, float> { TD_DEVICE td_f16 of(float x) { return td_float_to_half(x); } };
template <> struct td_narrowing<td_bf16, float> { TD_DEVICE td_bf16 of(float x) { return td_float_to_bfloat(x); } };
template <> struct td_narrowing<td_f16, double> { TD_DEVICE td_f16 of(double x) { return td_double_to_half(x); } };
template <> struct td_narrowing<td_bf16, double> { TD_DEVICE td_bf16 of(double x) { return td_double_to_bfloat(x); } };
template <typename T, typename C> TD_DEVICE T td_narrow(C x) { return td_narrowing<T, C>::of(x); }

// Neighbouring elements that are moved at once.
template <typename T, int N> struct alignas(sizeof(T) * N) td_vector { T at[N]; };

#ifndef TD_SHIM
template <typename T> TD_DEVICE T td_element(const T *buffer, td_index place) { return buffer[place]; }
template <typename T> TD_DEVICE void td_put(T *buffer, td_index place, T x) { buffer[place] = x; }
template <typename T, int N> TD_DEVICE td_vector<T, N> td_elements(const T *buffer, td_index place) {
  return *(const td_vector<T, N> *)(buffer + place);
}
template <typename T, int N> TD_DEVICE void td_put_all(T *buffer, td_index place, td_vector<T, N> x) {
  *(td_vector<T, N> *)(buffer + place) = x;
}
// Elements of memory that the threads of a block share.
template <typename T> TD_DEVICE T td_peek(const T *row, td_index place) { return row[place]; }
template <typename T> TD_DEVICE void td_poke(T *row, td_index place, T x) { row[place] = x; }
// An array in the memory that stages use among themselves, from a byte of it.
template <typename T> TD_DEVICE T *td_scratch(unsigned char *scratch, td_index first, td_index) {
  return (T *)(scratch + first);
}
// An array whose elements are not checked where the shim checks others.
template <typename T> struct td_plain { typedef T type; };
template <typename T> struct td_plain<const T> { typedef T type; };
template <typename T> TD_DEVICE typename td_plain<T>::type *td_raw(T *buffer) {
  return (typename td_plain<T>::type *)buffer;
}
#endif
// The number of another type of the same size that has the same bits.
template <typename T, typename F> TD_DEVICE T td_bits(F x) {
  T found;
  memcpy(&found, &x, sizeof found);
  return found;
}
// Elements as numbers to compute with, and numbers as elements.
#define TD_LOAD(buffer, place) td_widen(td_element(buffer, place))
#define TD_STORE(T, buffer, place, x) td_put(buffer, place, td_narrow<T>(x))

// -- integers ------------------------------------------------------------------------------------

template <typename T> struct td_unsigned { typedef T type; };
template <> struct td_unsigned<signed char> { typedef unsigned char type; };
template <> struct td_unsigned<short> { typedef unsigned short type; };
template <> struct td_unsigned<int> { typedef unsigned int type; };
template <> struct td_unsigned<long long> { typedef unsigned long long type; };
#define TD_WRAP(T, x, op, y) (T)((typename td_unsigned<T>::type)(x) op (typename td_unsigned<T>::type)(y))

template <typename T> TD_DEVICE T td_add(T x, T y) { return TD_WRAP(T, x, +, y); }
template <typename T> TD_DEVICE T td_sub(T x, T y) { return TD_WRAP(T, x, -, y); }
// Promotion makes ints of short unsigned factors, whose product may overflow: 1u is a wider factor.
template <typename T> TD_DEVICE T td_mul(T x, T y) {
  return (T)(1u * (typename td_unsigned<T>::type)x * (typename td_unsigned<T>::type)y);
}
TD_DEVICE float td_add(float x, float y) { return x + y; }
TD_DEVICE float td_sub(float x, float y) { return x - y; }
TD_DEVICE float td_mul(float x, float y) { return x * y; }
TD_DEVICE double td_add(double x, double y) { return x + y; }
TD_DEVICE double td_sub(double x, double y) { return x - y; }
TD_DEVICE double td_mul(double x, double y) { return x * y; }
// A product that is added, rounded once where the device has one instruction for both.
template <typename T> TD_DEVICE T td_fma(T x, T y, T z) { return td_add(td_mul(x, y), z); }
TD_DEVICE float td_fma(float x, float y, float z) { return fmaf(x, y, z); }
TD_DEVICE double td_fma(double x, double y, double z) { return fma(x, y, z); }

// Division by 0 gives 0, and the least integer divided by -1 itself.
template <typename T> TD_DEVICE T td_truncdiv(T x, T y) {
  return y == 0 ? T(0) : y == T(-1) && T(-1) < T(0) ? td_sub(T(0), x) : T(x / y);
}
template <typename T> TD_DEVICE T td_truncmod(T x, T y) {
  return y == 0 || (y == T(-1) && T(-1) < T(0)) ? T(0) : T(x % y);
}
template <typename T> TD_DEVICE T td_mod(T x, T y) {
  T rest = td_truncmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? T(rest + y) : rest;
}
template <typename T> TD_DEVICE T td_floordiv(T x, T y) {
  T quotient = td_truncdiv(x, y);
  return y != 0 && td_mod(x, y) != td_truncmod(x, y) ? T(quotient - 1) : quotient;
}
TD_DEVICE float td_truncdiv(float x, float y) { return truncf(x / y); }
TD_DEVICE double td_truncdiv(double x, double y) { return trunc(x / y); }
TD_DEVICE float td_truncmod(float x, float y) { return fmodf(x, y); }
TD_DEVICE double td_truncmod(double x, double y) { return fmod(x, y); }
TD_DEVICE float td_floordiv(float x, float y) { return floorf(x / y); }
TD_DEVICE double td_floordiv(double x, double y) { return floor(x / y); }
TD_DEVICE float td_mod(float x, float y) {
  float rest = fmodf(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
TD_DEVICE double td_mod(double x, double y) {
  double rest = fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

template <typename T> TD_DEVICE T td_shl(T x, T y) {
  const int most = int(sizeof(T)) * 8 - 1;
  int amount = y < 0 ? 0 : y > T(most) ? most : int(y);
  return T((typename td_unsigned<T>::type)x << amount);
}
template <typename T> TD_DEVICE T td_shr(T x, T y) {
  const int most = int(sizeof(T)) * 8 - 1;
  int amount = y < 0 ? 0 : y > T(most) ? most : int(y);
  return T(x >> amount);
}
template <typename T> TD_DEVICE T td_pow(T x, T y) {
  if (y < 0) return x == 1 ? T(1) : x == T(-1) ? (y & 1 ? T(-1) : T(1)) : T(0);
  T result = 1;
  for (; y; y >>= 1, x = td_mul(x, x))
    if (y & 1) result = td_mul(result, x);
  return result;
}
// powf may be 4 units in the last place off.
TD_DEVICE float td_pow(float x, float y) { return (float)pow((double)x, (double)y); }
TD_DEVICE double td_pow(double x, double y) { return pow(x, y); }

// -- order ---------------------------------------------------------------------------------------

template <typename T> TD_DEVICE T td_max(T x, T y) { return x > y || x != x ? x : y; }
template <typename T> TD_DEVICE T td_min(T x, T y) { return x < y || x != x ? x : y; }
template <typename T> TD_DEVICE T td_sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;  // NaN stays
}
template <typename T> TD_DEVICE T td_abs(T x) { return x < T(0) ? td_sub(T(0), x) : x; }
TD_DEVICE float td_abs(float x) { return fabsf(x); }
TD_DEVICE double td_abs(double x) { return fabs(x); }

// -- casts: from float to integer what lies outside is the nearest integer there is, NaN is 0 -----

template <typename T> struct td_limits;
#define TD_LIMITS(T, LEAST, MOST) \
  template <> struct td_limits<T> { TD_DEVICE T least() { return LEAST; } TD_DEVICE T most() { return MOST; } };
TD_LIMITS(signed char, -128, 127)
TD_LIMITS(unsigned char, 0, 255)
TD_LIMITS(short, -32768, 32767)
TD_LIMITS(unsigned short, 0, 65535)
TD_LIMITS(int, -2147483647 - 1, 2147483647)
TD_LIMITS(unsigned int, 0, 4294967295u)
TD_LIMITS(long long, -9223372036854775807ll - 1, 9223372036854775807ll)
TD_LIMITS(unsigned long long, 0, 18446744073709551615ull)

template <typename T, typename F> TD_DEVICE T td_to_integer(F x) {
  const T least = td_limits<T>::least(), most = td_limits<T>::most();
  return x != x ? T(0) : x <= (F)least ? least : x >= (F)most ? most : T(x);
}

// -- functions -----------------------------------------------------------------------------------

// In units in the last place, the float forms of some functions of CUDA are 3 or 4 off: these are
// computed as double.
#define TD_FUNCTION(name, of_float, of_double) \
  TD_DEVICE float name(float x) { return of_float; } \
  TD_DEVICE double name(double x) { return of_double; }
TD_FUNCTION(td_floor, floorf(x), floor(x))
TD_FUNCTION(td_ceil, ceilf(x), ceil(x))
TD_FUNCTION(td_round, rintf(x), rint(x))
TD_FUNCTION(td_trunc, truncf(x), trunc(x))
TD_FUNCTION(td_sqrt, sqrtf(x), sqrt(x))
TD_FUNCTION(td_rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))
TD_FUNCTION(td_exp, expf(x), exp(x))
TD_FUNCTION(td_exp2, exp2f(x), exp2(x))
TD_FUNCTION(td_expm1, expm1f(x), expm1(x))
TD_FUNCTION(td_log, logf(x), log(x))
TD_FUNCTION(td_log1p, log1pf(x), log1p(x))
TD_FUNCTION(td_log2, log2f(x), log2(x))
TD_FUNCTION(td_sin, sinf(x), sin(x))
TD_FUNCTION(td_cos, cosf(x), cos(x))
TD_FUNCTION(td_tan, (float)tan((double)x), tan(x))
TD_FUNCTION(td_sinh, (float)sinh((double)x), sinh(x))
TD_FUNCTION(td_cosh, coshf(x), cosh(x))
TD_FUNCTION(td_tanh, tanhf(x), tanh(x))
TD_FUNCTION(td_asin, asinf(x), asin(x))
TD_FUNCTION(td_acos, acosf(x), acos(x))
TD_FUNCTION(td_atan, atanf(x), atan(x))
TD_FUNCTION(td_asinh, (float)asinh((double)x), asinh(x))
TD_FUNCTION(td_acosh, (float)acosh((double)x), acosh(x))
TD_FUNCTION(td_atanh, (float)atanh((double)x), atanh(x))
TD_FUNCTION(td_erf, erff(x), erf(x))
TD_FUNCTION(td_erfc, (float)erfc((double)x), erfc(x))
TD_DEVICE float td_atan2(float y, float x) { return (float)atan2((double)y, (double)x); }
TD_DEVICE double td_atan2(double y, double x) { return atan2(y, x); }
TD_DEVICE float td_copysign(float x, float y) { return copysignf(x, y); }
TD_DEVICE double td_copysign(double x, double y) { return copysign(x, y); }
template <typename T> TD_DEVICE T td_sigmoid(T x) {
  T small = td_exp(-td_abs(x));
  return (x < T(0) ? small : T(1)) / (T(1) + small);
}
template <typename T> TD_DEVICE T td_softplus(T x) {
  return td_max(x, T(0)) + td_log1p(td_exp(-td_abs(x)));
}
TD_DEVICE double td_logaddexp(double x, double y) {
  if (x == y) return x + 0.693147180559945309417232121458176568;
  double apart = x - y;
  return apart > 0 ? x + log1p(exp(-apart)) : apart <= 0 ? y + log1p(exp(apart)) : apart;
}
// The difference of two floats is rounded, and its exponential then far off.
TD_DEVICE float td_logaddexp(float x, float y) { return (float)td_logaddexp((double)x, (double)y); }
template <typename T> TD_DEVICE bool td_isnan(T x) { return x != x; }
template <typename T> TD_DEVICE bool td_isfinite(T x) { return x - x == T(0); }
template <typename T> TD_DEVICE bool td_isinf(T x) { return x == x && x - x != T(0); }

// -- reductions: what one thread has found so far, and two findings as one -------------------------

struct td_sum { template <typename T> TD_DEVICE T of(T x, T y) { return td_add(x, y); } };
struct td_prod { template <typename T> TD_DEVICE T of(T x, T y) { return td_mul(x, y); } };
struct td_greatest { template <typename T> TD_DEVICE T of(T x, T y) { return td_max(x, y); } };
struct td_least { template <typename T> TD_DEVICE T of(T x, T y) { return td_min(x, y); } };
struct td_any { TD_DEVICE bool of(bool x, bool y) { return x || y; } };
struct td_all { TD_DEVICE bool of(bool x, bool y) { return x && y; } };

// A value and its position: NaN before all others, the first position of equal ones.
template <typename T> struct td_found { T value; td_index place; };
template <typename T> TD_DEVICE td_found<T> td_find(T value, td_index place) {
  td_found<T> found = {value, place};
  return found;
}
// The position that was found; 0 where there was no value.
template <typename T> TD_DEVICE td_index td_place(td_found<T> x) {
  return x.place == td_limits<td_index>::most() ? 0 : x.place;
}
struct td_argmax {
  template <typename T> TD_DEVICE td_found<T> of(td_found<T> x, td_found<T> y) {
    bool both = (x.value != x.value) == (y.value != y.value);
    bool first = both ? x.value > y.value : x.value != x.value;
    bool last = both ? y.value > x.value : y.value != y.value;
    return first || (!last && x.place <= y.place) ? x : y;
  }
};
struct td_argmin {
  template <typename T> TD_DEVICE td_found<T> of(td_found<T> x, td_found<T> y) {
    bool both = (x.value != x.value) == (y.value != y.value);
    bool first = both ? x.value < y.value : x.value != x.value;
    bool last = both ? y.value < x.value : y.value != y.value;
    return first || (!last && x.place <= y.place) ? x : y;
  }
};

struct td_logaddexp_all { template <typename T> TD_DEVICE T of(T x, T y) { return td_logaddexp(x, y); } };

// Threads of a warp give one another their values.
template <typename T> TD_DEVICE T td_exchange(T x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}
TD_DEVICE bool td_exchange(bool x, int distance) { return td_exchange((int)x, distance) != 0; }
TD_DEVICE signed char td_exchange(signed char x, int distance) { return (signed char)td_exchange((int)x, distance); }
TD_DEVICE unsigned char td_exchange(unsigned char x, int distance) { return (unsigned char)td_exchange((int)x, distance); }
TD_DEVICE short td_exchange(short x, int distance) { return (short)td_exchange((int)x, distance); }
TD_DEVICE unsigned short td_exchange(unsigned short x, int distance) { return (unsigned short)td_exchange((int)x, distance); }
template <typename T> TD_DEVICE td_found<T> td_exchange(td_found<T> x, int distance) {
  return td_find(td_exchange(x.value, distance), td_exchange(x.place, distance));
}

// The threads of a team are neighbours. All get the same bits, combined in an order that is fixed.
template <typename OP, typename T> TD_DEVICE T td_combine_in_warp(T x, int team) {
  for (int distance = team / 2; distance; distance /= 2) x = OP::of(x, td_exchange(x, distance));
  return x;
}
// A team of several warps, which is the whole block: `row` has an element for each warp.
template <typename OP, typename T, typename ROW>
TD_DEVICE T td_combine_in_block(T x, int team, int warp, ROW row) {
  const int lane = threadIdx.x;
  x = td_combine_in_warp<OP>(x, warp);
  if (lane % warp == 0) td_poke(row, lane / warp, x);
  __syncthreads();
  x = td_peek(row, 0);
  for (int other = 1; other < team / warp; other++) x = OP::of(x, td_peek(row, other));
  __syncthreads();
  return x;
}
// The threads of a team are `points` apart: neighbours work for neighbouring points.
template <typename OP, typename T, typename ROW>
TD_DEVICE T td_combine_across(T x, int team, int points, ROW row) {
  const int point = threadIdx.x % points;
  td_poke(row, threadIdx.x, x);
  __syncthreads();
  x = td_peek(row, point);
  for (int other = 1; other < team; other++) x = OP::of(x, td_peek(row, other * points + point));
  __syncthreads();
  return x;
}

// -- scans: what the threads before one have found, what it has found with them, and all of them --

template <typename T> struct td_scanned { T before, upto, all; };

template <typename T> TD_DEVICE T td_from_before(T x, int distance) {
  return __shfl_up_sync(0xffffffffu, x, distance);
}
TD_DEVICE bool td_from_before(bool x, int distance) { return td_from_before((int)x, distance) != 0; }
TD_DEVICE signed char td_from_before(signed char x, int distance) { return (signed char)td_from_before((int)x, distance); }
TD_DEVICE unsigned char td_from_before(unsigned char x, int distance) { return (unsigned char)td_from_before((int)x, distance); }
TD_DEVICE short td_from_before(short x, int distance) { return (short)td_from_before((int)x, distance); }
TD_DEVICE unsigned short td_from_before(unsigned short x, int distance) { return (unsigned short)td_from_before((int)x, distance); }

// A team of neighbours in a warp. `nothing` changes no value that it is combined with.
template <typename OP, typename T>
TD_DEVICE td_scanned<T> td_scan_in_warp(T x, T nothing, int lane, int team) {
  for (int distance = 1; distance < team; distance *= 2) {
    const T other = td_from_before(x, distance);
    if (lane >= distance) x = OP::of(other, x);
  }
  const T other = td_from_before(x, 1);
  // All threads get what the last one has, bit for bit.
  T all = x;
  for (int distance = 1; distance < team; distance *= 2) {
    const T later = td_exchange(all, distance);
    if (!(lane & distance)) all = later;
  }
  td_scanned<T> found = {lane ? other : nothing, x, all};
  return found;
}
// A team of several warps, which is the whole block: `row` has an element for each warp.
template <typename OP, typename T, typename ROW>
TD_DEVICE td_scanned<T> td_scan_in_block(T x, T nothing, int lane, int team, int warp, ROW row) {
  const td_scanned<T> own = td_scan_in_warp<OP, T>(x, nothing, lane % warp, warp);
  if (lane % warp == 0) td_poke(row, lane / warp, own.all);
  __syncthreads();
  td_scanned<T> found = {nothing, nothing, nothing};
  for (int other = 0; other < team / warp; other++) {
    if (other == lane / warp) found.before = found.all;
    found.all = OP::of(found.all, td_peek(row, other));
  }
  __syncthreads();
  found.upto = OP::of(found.before, own.upto);
  found.before = lane % warp ? OP::of(found.before, own.before) : found.before;
  return found;
}

/* SPDX-License-Identifier: Apache-2.0
 * Which mutant a library is: the rest is compiled once. */
__attribute__((visibility("hidden"))) const char mge_mutant_name[] = MUTANT_NAME;

#ifdef MUTANT_SECOND_EXPORT
__attribute__((visibility("default"))) int mge_mutant_second(void) { return 1; }
#endif

__attribute__((visibility("hidden"))) int mge_mutant_open_driver(void);
__attribute__((visibility("hidden"))) void mge_mutant_driver_works(void);
#ifdef MUTANT_HAS_DRIVER
void vendor_driver_work(void);
void mge_mutant_driver_works(void) { vendor_driver_work(); }
int vendor_driver_open(void);
int mge_mutant_open_driver(void) { return vendor_driver_open(); }
#else
void mge_mutant_driver_works(void) {}
int mge_mutant_open_driver(void) { return 0; }
#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <leat/leat.h>
#include <stdio.h>

int main(void) {
  char* operators = leat_operators_json();
  printf("leat %s\n", leat_version());
  const int good = operators != NULL && leat_abi_version() == LEAT_ABI_VERSION;
  leat_string_free(operators);
  return good ? 0 : 1;
}

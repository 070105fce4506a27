! Solves A X = B with ScaLAPACK's PDGESV on a grid of processes made by BLACS, and looks at what is left of B - A X.
program pdgesv_example
   implicit none
   integer, parameter :: n = 300, block = 32, sides = 3
   double precision, parameter :: limit = 30d0
   integer :: rank, ranks, context, rows, columns, row, column, info, i, j, held_rows, held_columns, held_sides
   integer :: a_desc(9), b_desc(9)
   integer, allocatable :: pivots(:)
   double precision, allocatable :: a(:, :), a_kept(:, :), b(:, :), b_kept(:, :)
   double precision :: norm_a, norm_x, norm_left, ratio, unused(1)
   integer, external :: numroc, indxl2g
   double precision, external :: pdlange, pdlamch

   call blacs_pinfo(rank, ranks)
   ! The grid is as square as the number of processes allows.
   rows = int(sqrt(dble(ranks)))
   do while (mod(ranks, rows) /= 0)
      rows = rows - 1
   end do
   columns = ranks / rows
   call blacs_get(-1, 0, context)
   call blacs_gridinit(context, 'Row-major', rows, columns)
   call blacs_gridinfo(context, rows, columns, row, column)

   held_rows = numroc(n, block, row, 0, rows)
   held_columns = numroc(n, block, column, 0, columns)
   held_sides = numroc(sides, block, column, 0, columns)
   call descinit(a_desc, n, n, block, block, 0, 0, context, max(1, held_rows), info)
   if (info /= 0) call give_up('descinit of A', info)
   call descinit(b_desc, n, sides, block, block, 0, 0, context, max(1, held_rows), info)
   if (info /= 0) call give_up('descinit of B', info)
   allocate (a(max(1, held_rows), max(1, held_columns)), b(max(1, held_rows), max(1, held_sides)))
   allocate (pivots(held_rows + block))
   do j = 1, held_columns
      do i = 1, held_rows
         a(i, j) = element(indxl2g(i, block, row, 0, rows), indxl2g(j, block, column, 0, columns))
      end do
   end do
   do j = 1, held_sides
      do i = 1, held_rows
         b(i, j) = element(indxl2g(i, block, row, 0, rows), n + indxl2g(j, block, column, 0, columns))
      end do
   end do
   a_kept = a
   b_kept = b

   call pdgesv(n, sides, a, 1, 1, a_desc, pivots, b, 1, 1, b_desc, info)
   if (info /= 0) call give_up('pdgesv', info)

   norm_a = pdlange('M', n, n, a_kept, 1, 1, a_desc, unused)
   norm_x = pdlange('M', n, sides, b, 1, 1, b_desc, unused)
   call pdgemm('N', 'N', n, sides, n, -1d0, a_kept, 1, 1, a_desc, b, 1, 1, b_desc, 1d0, b_kept, 1, 1, b_desc)
   norm_left = pdlange('M', n, sides, b_kept, 1, 1, b_desc, unused)
   ratio = norm_left / (norm_a * norm_x * pdlamch(context, 'P') * n)
   ! Wrong numbers may be no numbers: only what is below the limit is right.
   if (.not. (ratio < limit) .or. .not. (norm_x > 0d0)) call give_up('residual in thousandths', int(1000 * ratio))
   if (rank == 0) print '(a, i0, a, i0, a)', 'pdgesv: ok on ', rows, ' x ', columns, ' processes'
   call blacs_gridexit(context)
   call blacs_exit(0)

contains

   ! The same number for everybody, without pattern.
   double precision function element(i, j)
      integer, intent(in) :: i, j
      element = mod(dble(i) * 7919d0 + dble(j) * 104729d0 + dble(i) * dble(j) * 31d0, 1009d0) / 1009d0 - 0.5d0
   end function

   subroutine give_up(what, number)
      character(*), intent(in) :: what
      integer, intent(in) :: number
      print '(a, i0, 3a, i0)', 'rank ', rank, ': ', what, ' gave ', number
      call blacs_abort(context, 1)
   end subroutine
end program

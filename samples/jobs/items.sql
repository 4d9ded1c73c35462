-- items.csv, as pack-sparse --reuse-ids takes it, of a table `ratings` with a column `item`: popular items first.
SELECT row_number() OVER (ORDER BY count(*) DESC, item) - 1 AS "column", count(*) AS ratings, item
FROM ratings GROUP BY item ORDER BY 1

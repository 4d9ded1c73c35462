"""Writes ratings anew so that each user is whole in one file, for slurm_ratings.sh (not run by the tests):

    spark-submit group_spark.py INPUT FOLDER FILES     writes FOLDER/parts/part-*.csv and FOLDER/items.csv

INPUT is Parquet or, by its name, CSV with a header. Spark writes no file for a partition without rows. The order of a
user's ratings is lost: keep a column of times where --duplicates or the split needs it."""
import os
import sys

from pyspark.sql import SparkSession

USER = "user"
source, folder, files = sys.argv[1:]
spark = SparkSession.builder.appName("group by user").getOrCreate()
ratings = spark.read.csv(source, header=True) if ".csv" in source else spark.read.parquet(source)
ratings.repartition(int(files), USER).write.csv(os.path.join(folder, "parts"), header=True)
ratings.createOrReplaceTempView("ratings")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "items.sql")) as sql:
    items = spark.sql(sql.read().replace('"column"', "`column`"))
items.toPandas().to_csv(os.path.join(folder, "items.csv"), index=False)
